x:
  test.nop:
    - require:
      - [a]
