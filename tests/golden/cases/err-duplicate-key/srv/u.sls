a:
  test.nop:
    - x:
        k: 1
        k: 2
