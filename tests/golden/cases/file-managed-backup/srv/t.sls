ROOT/box/f:
  file.managed:
    - contents: new
    - backup: minion
