x:
  file.line:
    - name: ROOT/box/x
    - nosuch_argument: 1
