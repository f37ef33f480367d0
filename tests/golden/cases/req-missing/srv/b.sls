a:
  test.nop:
    - require:
      - nope
