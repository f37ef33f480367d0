compound: test.nop
