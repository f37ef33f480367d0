base: {'*': [u]}
