f: test.nop
