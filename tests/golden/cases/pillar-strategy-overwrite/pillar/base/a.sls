m: {x: 1, y: {z: 1}}
l: [1]
only: a
