include: [a]
c: test.nop
