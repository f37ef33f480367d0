base: {'*': [nginx]}
