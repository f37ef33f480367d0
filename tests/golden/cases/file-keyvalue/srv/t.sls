single:
  file.keyvalue:
    - name: ROOT/box/a
    - key: key
    - value: new
several:
  file.keyvalue:
    - name: ROOT/box/a
    - key_values:
        last: 10
        added: yes
    - separator: '='
    - append_if_not_found: True
uncomment:
  file.keyvalue:
    - name: ROOT/box/b
    - key_values:
        Port: 2222
        permitrootlogin: 'no'
    - separator: ' '
    - uncomment: '# '
    - key_ignore_case: True
notfound:
  file.keyvalue:
    - name: ROOT/box/a
    - key: nosuch
    - value: x
missing:
  file.keyvalue:
    - name: ROOT/box/nosuch
    - key: a
    - value: b
nothing:
  file.keyvalue:
    - name: ROOT/box/a
