include:
  - base
first:
  test.succeed_with_changes
