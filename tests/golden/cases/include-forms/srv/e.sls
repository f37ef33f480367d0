include:
  - 7
e: test.nop
