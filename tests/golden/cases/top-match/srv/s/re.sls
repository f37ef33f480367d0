re: test.nop
