include:
  - base
exclude:
  - sls: ba*
a:
  test.nop:
    - require:
      - test: one
