inc: test.nop
