a:
  test.nop:
    - x: {yes: 1, True: 2}
