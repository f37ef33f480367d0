include:
  - sub.one
  - sub.two
main_first: test.nop
main_last:
  test.nop:
    - order: last
