from-dir:
  test.nop: []
