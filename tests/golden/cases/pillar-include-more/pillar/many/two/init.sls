two: 2
