inc_conf:
  file.managed:
    - name: ROOT/box/inc
    - contents: x
