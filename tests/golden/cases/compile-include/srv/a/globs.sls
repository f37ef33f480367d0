include:
  - a.g.*
globs:
  test.nop:
    - require:
      - sls: a.g.*
