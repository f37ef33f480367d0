grain: test.nop
