by: test.nop
