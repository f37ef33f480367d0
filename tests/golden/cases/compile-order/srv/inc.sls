z:
  test.nop
y:
  test.nop:
    - require:
      - test: x
x:
  test.nop
