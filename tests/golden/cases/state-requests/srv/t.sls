a: test.nop
b{{ pillar.get('k', '') }}: test.succeed_with_changes
