dev:
  test.nop: []
