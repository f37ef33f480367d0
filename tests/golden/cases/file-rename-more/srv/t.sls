plain:
  file.rename:
    - name: ROOT/box/a2
    - source: ROOT/box/a
forced:
  file.rename:
    - name: ROOT/box/c
    - source: ROOT/box/b
    - force: True
dir:
  file.rename:
    - name: ROOT/box/d2
    - source: ROOT/box/d
nodir:
  file.rename:
    - name: ROOT/box/no/c
    - source: ROOT/box/c
relative:
  file.rename:
    - name: x
    - source: ROOT/box/c
