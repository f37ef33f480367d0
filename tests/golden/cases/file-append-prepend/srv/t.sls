append:
  file.append:
    - name: ROOT/box/a
    - text: second
appendlist:
  file.append:
    - name: ROOT/box/a
    - text:
      - second
      - third
      - "with\ttab"
appendblock:
  file.append:
    - name: ROOT/box/a
    - text: |
        block one
        block two
new:
  file.append:
    - name: ROOT/box/new
    - text: created
deep:
  file.append:
    - name: ROOT/box/deep/new
    - text: created
    - makedirs: True
nodir:
  file.append:
    - name: ROOT/box/none/new
    - text: x
source:
  file.append:
    - name: ROOT/box/a
    - source: salt://src.txt
spaces:
  file.append:
    - name: ROOT/box/a
    - text: "block   one"
prepend:
  file.prepend:
    - name: ROOT/box/b
    - text: zeroth
prependlist:
  file.prepend:
    - name: ROOT/box/b
    - text: [x, y]
header:
  file.prepend:
    - name: ROOT/box/b
    - text: [x, y]
    - header: True
prependnew:
  file.prepend:
    - name: ROOT/box/pnew
    - text: x
