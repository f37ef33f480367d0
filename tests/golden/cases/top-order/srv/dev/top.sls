base: {'*': [base_of_dev]}
dev: {'*': [dev_of_dev], 'golden': [d2]}
