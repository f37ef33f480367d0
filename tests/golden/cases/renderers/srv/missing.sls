#!nonsense|yaml
a: test.nop
