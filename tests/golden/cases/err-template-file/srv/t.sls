undefined:
  file.managed:
    - name: ROOT/box/a
    - source: salt://bad.jinja
    - template: jinja
syntax:
  file.managed:
    - name: ROOT/box/b
    - source: salt://syntax.jinja
    - template: jinja
engine:
  file.managed:
    - name: ROOT/box/c
    - source: salt://bad.jinja
    - template: nosuch
after:
  test.nop:
    - require:
      - file: undefined
