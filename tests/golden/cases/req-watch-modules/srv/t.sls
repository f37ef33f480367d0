chg: test.succeed_with_changes
filewatch:
  file.managed:
    - name: ROOT/box/x
    - contents: x
    - watch:
      - test: chg
cmdwatch:
  cmd.run:
    - name: echo hi
    - watch:
      - test: chg
cmdwait:
  cmd.wait:
    - name: echo waited
    - watch:
      - test: chg
      - file: filewatch
modwait:
  module.wait:
    - name: test.echo
    - text: m
    - watch:
      - test: chg
envwatch:
  environ.setenv:
    - name: GOLDEN_W
    - value: w
    - watch:
      - test: chg
failwatch:
  test.nop:
    - watch:
      - test: bad
bad: test.fail_without_changes
