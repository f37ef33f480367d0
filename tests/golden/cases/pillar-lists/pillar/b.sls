include: [c]
m: {l: [{x: 1}, 1, 3], s: [two]}
l: {a: 1}
