u: test.nop
