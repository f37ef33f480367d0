a:
  nosuch.fun
b:
  file.nosuch:
    - name: x
c:
  test.nop:
    - require:
      - nosuch: a
