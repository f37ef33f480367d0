beside: 1
