pcre: test.nop
