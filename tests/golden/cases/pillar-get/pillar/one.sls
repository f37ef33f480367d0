a:
  b: text
  list: [x, y, {z: 3}]
  n: 0
7: seven
over: {x: 1, y: 2}
