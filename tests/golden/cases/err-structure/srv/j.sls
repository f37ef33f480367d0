7:
  test.nop
