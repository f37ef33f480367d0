shared: dev
list: [3]
tree: {dev: 1, both: dev}
