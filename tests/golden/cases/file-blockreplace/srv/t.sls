replace:
  file.blockreplace:
    - name: ROOT/box/a
    - marker_start: "# START"
    - marker_end: "# END"
    - content: |
        new one
        new two
append:
  file.blockreplace:
    - name: ROOT/box/b
    - marker_start: "# START"
    - marker_end: "# END"
    - content: appended
    - append_if_not_found: True
    - append_newline: True
prepend:
  file.blockreplace:
    - name: ROOT/box/c
    - marker_start: "# START"
    - marker_end: "# END"
    - content: prepended
    - prepend_if_not_found: True
    - backup: '.orig'
none:
  file.blockreplace:
    - name: ROOT/box/d
    - marker_start: "# START"
    - marker_end: "# END"
    - content: x
noend:
  file.blockreplace:
    - name: ROOT/box/e
    - marker_start: "# START"
    - marker_end: "# END"
    - content: x
source:
  file.blockreplace:
    - name: ROOT/box/d
    - marker_start: "# S"
    - marker_end: "# E"
    - source: salt://block.txt
    - append_if_not_found: True
    - backup: False
missing:
  file.blockreplace:
    - name: ROOT/box/nosuch
    - content: x
