a:
  file.touch:
    - name: ROOT/box/t
    - nosuch: 1
b:
  test.nop
