x:
  test.nop:
    - prereq:
      - test: y
y:
  test.nop:
    - prereq:
      - test: x
