include:
  - ..up
toofar:
  test.nop
