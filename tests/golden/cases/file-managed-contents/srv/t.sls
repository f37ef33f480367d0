ROOT/box/plain:
  file.managed:
    - contents: one line
    - mode: 0640
ROOT/box/list:
  file.managed:
    - contents:
      - one
      - two
      - 3
ROOT/box/block:
  file.managed:
    - contents: |
        one
          two
    - mode: '0600'
    - user: root
    - group: root
ROOT/box/nonewline:
  file.managed:
    - contents: x
    - contents_newline: False
ROOT/box/empty:
  file.managed
ROOT/box/emptycontents:
  file.managed:
    - contents: ''
ROOT/box/number:
  file.managed:
    - contents: 42
ROOT/box/deep/er/file:
  file.managed:
    - contents: x
    - makedirs: True
    - dir_mode: 750
ROOT/box/nodir/file:
  file.managed:
    - contents: x
ROOT/box/template:
  file.managed:
    - contents: "{{ '{{ 1 + 1 }}' }}"
    - template: jinja
