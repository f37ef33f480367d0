include: [..up, .beside]
c: 1
