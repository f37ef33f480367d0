sub: test.nop
