changes:
  test.succeed_with_changes:
    - parallel: True
watches:
  test.succeed_without_changes:
    - watch: [test: changes]
listens:
  test.succeed_without_changes:
    - listen: [test: changes]
