ROOT/box/mode:
  file.recurse:
    - source: salt://tree
    - user: nobody
    - group: nogroup
    - file_mode: '0600'
    - dir_mode: '0700'
ROOT/box/isfile:
  file.recurse:
    - source: salt://tree
ROOT/box/list:
  file.recurse:
    - source:
      - salt://nosuch
      - salt://tree
    - include_pat: 'E@^x/'
ROOT/box/sub:
  file.recurse:
    - source: salt://tree/x
relative:
  file.recurse:
    - source: salt://tree
nosalt:
  file.recurse:
    - name: ROOT/box/ns
    - source: /etc
