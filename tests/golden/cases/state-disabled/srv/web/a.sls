c: test.nop
