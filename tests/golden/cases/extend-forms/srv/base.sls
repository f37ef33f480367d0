one:
  file.managed:
    - name: ROOT/box/one
    - contents: base
two:
  test.nop: []
