include:
  - base
exclude:
  - id: one
  - two
a:
  test.nop
