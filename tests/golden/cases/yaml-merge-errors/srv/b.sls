x: *nope
