x:
  file.cached:
    - name: ROOT/box/x
    - nosuch_argument: 1
