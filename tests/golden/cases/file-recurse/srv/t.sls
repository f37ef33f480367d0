ROOT/box/plain:
  file.recurse:
    - source: salt://tree
ROOT/box/templated:
  file.recurse:
    - source: salt://tree
    - template: jinja
    - file_mode: '0600'
    - dir_mode: '0711'
    - include_pat: '*.txt'
ROOT/box/excluded:
  file.recurse:
    - source: salt://tree
    - exclude_pat: 'E@\.conf$'
    - file_mode: keep
ROOT/box/none:
  file.recurse:
    - source: salt://nosuch
