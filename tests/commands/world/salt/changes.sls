changed:
  test.succeed_with_changes: []
clean:
  test.succeed_without_changes:
    - name: quiet
noop:
  test.nop: []
