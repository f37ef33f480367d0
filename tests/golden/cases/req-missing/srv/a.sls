a:
  test.nop:
    - require:
      - file: nope
