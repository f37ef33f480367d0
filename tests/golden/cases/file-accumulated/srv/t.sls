ROOT/box/out:
  file.managed:
    - source: salt://acc.jinja
    - template: jinja
one:
  file.accumulated:
    - filename: ROOT/box/out
    - text: first
    - require_in:
      - file: ROOT/box/out
two:
  file.accumulated:
    - name: one
    - filename: ROOT/box/out
    - text: [second, third]
    - require_in:
      - file: ROOT/box/out
block:
  file.blockreplace:
    - name: ROOT/box/b
    - marker_start: '# S'
    - marker_end: '# E'
    - content: start
    - append_if_not_found: True
inblock:
  file.accumulated:
    - filename: ROOT/box/b
    - text: in block
    - require_in:
      - file: block
alone:
  file.accumulated:
    - filename: ROOT/box/none
    - text: x
