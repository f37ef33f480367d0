include: [a]
same:
  file.touch:
    - name: ROOT/box/x
