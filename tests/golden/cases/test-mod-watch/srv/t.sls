a:
  test.succeed_with_changes
b:
  test.succeed_without_changes:
    - watch:
      - test: a
c:
  test.nop:
    - watch:
      - test: b
      - test: a
d:
  file.managed:
    - name: ROOT/box/x
    - contents: x
e:
  test.nop:
    - watch:
      - file: d
f:
  file.managed:
    - name: ROOT/box/x
    - contents: x
    - watch:
      - test: a
