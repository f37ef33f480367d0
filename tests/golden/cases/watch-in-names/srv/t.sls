conf:
  file.managed:
    - names:
      - ROOT/box/a
      - ROOT/box/b
    - contents: x
    - watch_in:
      - cmd: restart
    - onchanges_in:
      - test: changed
restart:
  cmd.wait:
    - name: echo restarted
changed: test.nop
partial:
  test.nop:
    - onchanges:
      - file: ROOT/box/a
