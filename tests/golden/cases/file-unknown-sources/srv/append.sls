x:
  file.append:
    - name: ROOT/box/x
    - nosuch_argument: 1
