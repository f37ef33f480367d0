v: test.nop
