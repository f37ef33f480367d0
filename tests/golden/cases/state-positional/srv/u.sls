c: test.fail_with_changes
d: test.nop
