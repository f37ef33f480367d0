x:
  file.replace:
    - name: ROOT/box/x
    - pattern: a
    - repl: b
    - nosuch_argument: 1
