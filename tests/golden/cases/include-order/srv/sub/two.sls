include:
  - .three
two: test.nop
