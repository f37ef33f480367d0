include: [inc]
exclude:
  - inc
v: test.nop
