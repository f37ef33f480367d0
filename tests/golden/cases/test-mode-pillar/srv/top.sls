base: {'*': [f]}
