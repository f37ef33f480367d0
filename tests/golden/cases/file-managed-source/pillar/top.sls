base: {'*': [p]}
