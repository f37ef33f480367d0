ROOT/box/merged:
  file.recurse:
    - source: [salt://one, salt://none, salt://low]
    - merge: True
    - clean: True
first:
  file.recurse:
    - name: ROOT/box/first
    - source: [salt://none, salt://low, salt://one]
linked:
  file.recurse:
    - name: ROOT/box/linked
    - source: [salt://low, salt://one]
    - merge: True
    - keep_symlinks: True
refused:
  file.recurse:
    - name: ROOT/box/refused
    - source: salt://one
    - mode: '0644'
