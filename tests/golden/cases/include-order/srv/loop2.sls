include: [loop1]
loop2: test.nop
