q: 1
tree: {both: qa}
