tree:
  file.recurse:
    - name: ROOT/box/tree
    - source: salt://tree
    - template: jinja
    - context: {v: value}
one:
  file.managed:
    - name: ROOT/box/one.png
    - source: salt://tree/logo.png
    - template: jinja
own:
  file.managed:
    - name: ROOT/box/own
    - source: ROOT/box/own
    - template: jinja
