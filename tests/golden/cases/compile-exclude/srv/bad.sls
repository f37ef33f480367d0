exclude: x
a:
  test.nop
