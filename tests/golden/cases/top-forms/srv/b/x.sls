bx: test.nop
