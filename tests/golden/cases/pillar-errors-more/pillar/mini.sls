include: [gone]
c: 1
