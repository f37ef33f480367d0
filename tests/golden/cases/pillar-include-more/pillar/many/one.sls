one: 1
