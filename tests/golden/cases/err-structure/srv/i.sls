include: b
a:
  test.nop
