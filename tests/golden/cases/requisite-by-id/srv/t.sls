a b c:
  test.succeed_with_changes
d:
  test.nop:
    - require:
      - a b c
e:
  test.nop:
    - onchanges:
      - id: a b c
f:
  test.nop:
    - name: fname
    - watch:
      - test: a b c
g:
  test.nop:
    - require:
      - test: fname
h:
  test.nop:
    - require:
      - fname
