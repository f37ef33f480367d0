ROOT/box/x:
  file.managed:
    - contents: a
