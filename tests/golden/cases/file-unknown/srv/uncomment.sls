x:
  file.uncomment:
    - name: ROOT/box/x
    - regex: a
    - nosuch_argument: 1
