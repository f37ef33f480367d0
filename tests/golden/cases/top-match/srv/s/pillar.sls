pillar: test.nop
