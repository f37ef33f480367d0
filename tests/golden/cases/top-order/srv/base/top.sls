base: {'*': [base_of_base], 'golden': [b2]}
dev: {'*': [dev_of_base]}
