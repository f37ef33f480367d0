a:
  test.nop:
    name: x
