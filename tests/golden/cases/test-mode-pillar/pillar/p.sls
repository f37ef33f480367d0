test: true
