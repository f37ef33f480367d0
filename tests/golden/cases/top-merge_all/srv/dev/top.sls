base: {'*': [basefromdev]}
dev: {'*': [fromdev]}
qa: {'*': [qafromdev]}
other: {'*': [otherfromdev]}
