e: test.nop
