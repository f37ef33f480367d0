unused: test.nop
