three: test.nop
