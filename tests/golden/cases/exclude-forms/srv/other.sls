o: test.nop
