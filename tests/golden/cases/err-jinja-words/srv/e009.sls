{% set s = 'x' %}{{ s.foo }}
