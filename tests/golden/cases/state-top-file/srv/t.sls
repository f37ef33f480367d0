include: [v]
a: test.nop
b: test.succeed_with_changes
