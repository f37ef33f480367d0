glob: test.nop
