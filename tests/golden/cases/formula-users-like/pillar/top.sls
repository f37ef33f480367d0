base: {'*': [users]}
