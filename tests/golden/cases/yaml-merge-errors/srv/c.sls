x:
  test.nop:
    - ? [a, b]
      : c
