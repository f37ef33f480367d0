spaced:
  file.keyvalue:
    - name: ROOT/box/conf
    - key_values: {a: '9', b: '8', c: '7'}
    - separator: ' = '
uncomment:
  file.keyvalue:
    - name: ROOT/box/sshd
    - key: PermitRootLogin
    - value: 'yes'
    - separator: ' '
    - uncomment: '#'
    - append_if_not_found: True
prepend:
  file.keyvalue:
    - name: ROOT/box/sshd
    - key: First
    - value: 'line'
    - separator: ' '
    - prepend_if_not_found: True
search:
  file.keyvalue:
    - name: ROOT/box/conf
    - key: a
    - value: '1'
    - search_only: True
ignored:
  file.keyvalue:
    - name: ROOT/box/none
    - key: a
    - value: b
    - ignore_if_missing: True
created:
  file.keyvalue:
    - name: ROOT/box/created
    - key: a
    - value: b
    - append_if_not_found: True
    - create_if_missing: True
hidden:
  file.keyvalue:
    - name: ROOT/box/sshd
    - key: Port
    - value: '2222'
    - separator: ' '
    - show_changes: False
