wrong:
  test.nop:
    - require:
        test: other
