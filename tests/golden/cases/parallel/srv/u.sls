inner:
  test.succeed_with_changes:
    - parallel: True
