include: [inc, other]
exclude:
  - sls: other
  - id: i1
t: test.nop
