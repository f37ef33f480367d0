include:
  - sub.three
one: test.nop
