inc:
  test.nop:
    - order: 3
unused_in: test.nop
