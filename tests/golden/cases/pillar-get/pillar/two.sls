over: {y: 3, z: 4}
a:
  list: [q]
