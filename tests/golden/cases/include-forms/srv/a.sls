include:
  - base: inc
a: test.nop
