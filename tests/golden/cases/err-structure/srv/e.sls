a:
  test.nop:
    - names: x
