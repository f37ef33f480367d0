ctx_over_defaults:
  file.managed:
    - name: ROOT/box/a
    - source: salt://t.jinja
    - template: jinja
    - defaults: {x: d, y: d}
    - context: {x: c}
    - user: root
    - mode: 644
ctx_from_jinja:
  file.managed:
    - name: ROOT/box/b
    - source: salt://t.jinja
    - template: jinja
    - context: {{ {'x': [1, 'two'], 'y': {'k': none}} | json }}
