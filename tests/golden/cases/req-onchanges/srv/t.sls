conf:
  file.managed:
    - name: ROOT/box/conf
    - contents: x
reload:
  cmd.run:
    - name: echo reload
    - onchanges:
      - file: conf
reload_any:
  cmd.run:
    - name: echo any
    - onchanges_any:
      - file: conf
      - test: other
other: test.nop
after:
  test.nop:
    - onchanges:
      - cmd: reload
bysls:
  test.nop:
    - onchanges:
      - sls: inc
include: [inc]
