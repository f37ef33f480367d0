include: [inc]
main: test.nop
