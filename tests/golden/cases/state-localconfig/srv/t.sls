own: test.succeed_with_changes
