qa: {'*': [q]}
base: {'*': [basefromqa]}
