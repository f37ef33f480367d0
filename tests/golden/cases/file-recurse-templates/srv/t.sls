ROOT/box/tree:
  file.recurse:
    - source: salt://tree
    - template: jinja
    - context: {x: ctx}
    - file_mode: '0640'
    - clean: True
after:
  test.nop:
    - onchanges:
      - file: ROOT/box/tree
