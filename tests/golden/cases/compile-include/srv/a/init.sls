include:
  - .c
a:
  test.nop:
    - require:
      - sls: a.c
