#!nosuch|yaml
a: test.nop
