ROOT/box/plain:
  file.managed:
    - contents: other line
    - mode: 0644
ROOT/box/list:
  file.managed:
    - contents: [one, 2, 3, four]
ROOT/box/block:
  file.managed:
    - mode: '0644'
    - replace: False
ROOT/box/nonewline:
  file.managed:
    - contents: x
ROOT/box/empty:
  file.managed:
    - contents: no longer
    - show_changes: False
ROOT/box/emptycontents:
  file.managed:
    - contents: never
    - create: False
ROOT/box/newnot:
  file.managed:
    - contents: never
    - create: False
ROOT/box/number:
  file.managed:
    - contents: 43
    - replace: False
ROOT/box/deep:
  file.managed:
    - contents: x
relative/path:
  file.managed:
    - contents: x
