one:
  test.nop:
    - require:
      - pkg: nothere
