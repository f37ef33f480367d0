i1: test.nop
i2: test.nop
