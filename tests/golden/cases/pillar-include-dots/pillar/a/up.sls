up: 1
