{% set n = none %}{{ n.foo }}
