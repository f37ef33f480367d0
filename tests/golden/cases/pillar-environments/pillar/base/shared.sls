shared: base
list: [1, 2]
