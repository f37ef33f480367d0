same:
  file.hardlink:
    - name: ROOT/box/same
    - target: ROOT/box/a
dir:
  file.hardlink:
    - name: ROOT/box/dir
    - target: ROOT/box/a
forced:
  file.hardlink:
    - name: ROOT/box/b
    - target: ROOT/box/a
    - force: True
