a:
  test.nop:
    - require:
      - test: n*
