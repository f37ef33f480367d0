x:
  file.touch:
    - name: ROOT/box/x
    - nosuch_argument: 1
