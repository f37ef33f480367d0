inner:
  test.nop: []
