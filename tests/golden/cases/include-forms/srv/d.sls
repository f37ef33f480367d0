include:
  - inc
  - inc
d: test.nop
