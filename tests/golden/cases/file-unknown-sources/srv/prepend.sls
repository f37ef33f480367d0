x:
  file.prepend:
    - name: ROOT/box/x
    - nosuch_argument: 1
