include: []
c: test.nop
