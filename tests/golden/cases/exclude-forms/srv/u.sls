include: [inc]
exclude: [i2]
u:
  test.nop:
    - require:
      - test: i1
