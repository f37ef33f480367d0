a:
  test.nop:
    - require: [{test: d}]
b:
  test.nop:
    - require: [{test: a}]
c: test.nop
d:
  test.nop:
    - require: [{test: e}]
    - order: last
e: test.nop
f:
  test.nop:
    - order: 1
    - require: [{test: c}]
g:
  test.nop:
    - order: -1
h:
  test.nop:
    - order: first
    - watch: [{test: g}]
