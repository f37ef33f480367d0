a:
  test.nop:
    - require:
      - sls: nope
