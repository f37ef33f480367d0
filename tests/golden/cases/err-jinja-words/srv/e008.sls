{% set l = [1] %}{{ l.foo }}
