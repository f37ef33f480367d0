x:
  file.keyvalue:
    - name: ROOT/box/x
    - nosuch_argument: 1
