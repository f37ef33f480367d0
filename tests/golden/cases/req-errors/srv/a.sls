x:
  test.nop:
    - require:
      - test: y
        file: z
