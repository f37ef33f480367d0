include:
  - .c
  - a
  - ..top
ab:
  test.nop
