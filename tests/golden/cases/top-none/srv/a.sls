a: test.nop
