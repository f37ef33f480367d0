include:
  - inc
a:
  test.nop
b:
  test.nop:
    - order: first
c:
  test.nop:
    - order: last
d:
  test.nop:
    - order: 5
e:
  test.nop:
    - order: -2
f:
  test.nop:
    - require_in:
      - test: a
g:
  test.nop:
    - names:
      - one
      - two:
        - order: 1
      - three
h:
  test.nop:
    - order: 5.5
