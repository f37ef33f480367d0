include: [loop2]
loop1: test.nop
