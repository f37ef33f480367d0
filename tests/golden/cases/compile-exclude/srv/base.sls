one:
  test.nop
two:
  test.nop
three:
  test.nop
