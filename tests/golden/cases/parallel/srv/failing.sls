bad:
  cmd.run:
    - name: exit 3
    - parallel: True
needs:
  test.nop:
    - require: [cmd: bad]
on_bad:
  test.nop:
    - onfail: [cmd: bad]
changed:
  test.nop:
    - onchanges: [cmd: bad]
broken:
  file.managed:
    - name: relative
    - parallel: True
