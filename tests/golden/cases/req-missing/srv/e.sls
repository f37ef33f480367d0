a:
  test.nop:
    - name: aname
    - require:
      - test: b
b:
  test.nop:
    - require:
      - test: a
c:
  test.nop:
    - require:
      - test: c
