base: {'*': [a, b]}
