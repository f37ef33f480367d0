base: {'*': [a.b.c]}
