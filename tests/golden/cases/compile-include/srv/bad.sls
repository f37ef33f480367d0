include:
  - nosuch
bad:
  test.nop
