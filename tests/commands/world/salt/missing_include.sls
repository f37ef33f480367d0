include:
  - not.there
one:
  test.nop: []
