base: {'*': [t]}
