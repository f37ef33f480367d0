a:
  test.nop:
    - listen:
      - test: nope
