indent:
  file.blockreplace:
    - name: ROOT/box/a
    - marker_start: '# BEGIN'
    - marker_end: '# END'
    - content: |
        line one

        line three
    - backup: False
default_markers:
  file.blockreplace:
    - name: ROOT/box/b
    - content: managed
    - append_if_not_found: True
    - backup: False
empty:
  file.blockreplace:
    - name: ROOT/box/a
    - marker_start: '# BEGIN'
    - marker_end: '# END'
    - content: ''
    - backup: False
hidden:
  file.blockreplace:
    - name: ROOT/box/a
    - marker_start: '# BEGIN'
    - marker_end: '# END'
    - content: secret
    - show_changes: False
    - backup: False
newline_false:
  file.blockreplace:
    - name: ROOT/box/b
    - marker_start: '# X'
    - marker_end: '# Y'
    - content: 'xy'
    - append_if_not_found: True
    - append_newline: False
    - backup: False
before:
  file.blockreplace:
    - name: ROOT/box/a
    - marker_start: '# I'
    - marker_end: '# J'
    - content: 'inserted'
    - insert_before_match: '^tail'
    - backup: False
after:
  file.blockreplace:
    - name: ROOT/box/a
    - marker_start: '# K'
    - marker_end: '# L'
    - content: 'inserted after'
    - insert_after_match: '^head'
    - backup: False
