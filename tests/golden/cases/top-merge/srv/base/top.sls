base: {'*': [b1], 'golden': [b2]}
dev: {'*': [frombase]}
