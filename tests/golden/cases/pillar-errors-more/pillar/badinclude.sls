include: a
b: 1
