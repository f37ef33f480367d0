a:
  test.nop:
    - require: x
