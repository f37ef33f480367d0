all:
  file.comment:
    - name: ROOT/box/a
    - regex: key
whole:
  file.comment:
    - name: ROOT/box/a
    - regex: ^end$
    - char: ';'
back:
  file.uncomment:
    - name: ROOT/box/a
    - regex: ^key one
again:
  file.comment:
    - name: ROOT/box/a
    - regex: ^end$
    - char: ';'
