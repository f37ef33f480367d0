comment:
  file.comment:
    - name: ROOT/box/a
    - regex: ^option one
commentchar:
  file.comment:
    - name: ROOT/box/a
    - regex: ^tail$
    - char: '; '
    - backup: False
commentindent:
  file.comment:
    - name: ROOT/box/a
    - regex: ^\s*indented
missing:
  file.comment:
    - name: ROOT/box/nosuch
    - regex: x
notfound:
  file.comment:
    - name: ROOT/box/b
    - regex: ^y
notfoundok:
  file.comment:
    - name: ROOT/box/b
    - regex: ^y
    - ignore_missing: True
uncomment:
  file.uncomment:
    - name: ROOT/box/a
    - regex: commented four
uncomment5:
  file.uncomment:
    - name: ROOT/box/a
    - regex: nospace five
unnotfound:
  file.uncomment:
    - name: ROOT/box/b
    - regex: y
