top:
  file.accumulated:
    - filename: ROOT/box/f
    - text: one
    - require_in:
      - file: first
bottom:
  file.accumulated:
    - filename: ROOT/box/f
    - text: [two, "three\n", four]
    - require_in:
      - file: second
watched:
  file.accumulated:
    - filename: ROOT/box/f
    - text: five
    - watch_in:
      - file: second
orphan:
  file.accumulated:
    - filename: ROOT/box/f
    - text: six
    - require_in:
      - test: other
other:
  test.nop
first:
  file.blockreplace:
    - name: ROOT/box/f
    - marker_start: '# A'
    - marker_end: '# /A'
    - append_if_not_found: True
second:
  file.blockreplace:
    - name: ROOT/box/f
    - marker_start: '# B'
    - marker_end: '# /B'
    - content: begin
    - append_if_not_found: True
