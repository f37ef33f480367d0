m: {a: {b: 1}, l: [1, 2], s: x}
other: {k: v}
