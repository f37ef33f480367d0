x:
  file.blockreplace:
    - name: ROOT/box/x
    - nosuch_argument: 1
