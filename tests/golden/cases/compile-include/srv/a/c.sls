ac:
  test.nop
