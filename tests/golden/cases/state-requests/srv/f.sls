c: test.fail_with_changes
