all: test.nop
