order: [late]
which: late
