secret: x
