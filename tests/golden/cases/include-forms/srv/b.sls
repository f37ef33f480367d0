include:
  - nosuchenv: inc
b: test.nop
