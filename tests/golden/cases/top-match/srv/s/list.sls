list: test.nop
