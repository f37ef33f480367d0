one:
  cmd.run:
    - name: sleep 0.3; echo one >> ROOT/box/log
    - parallel: True
two:
  cmd.run:
    - name: sleep 0.1; echo two >> ROOT/box/log
    - parallel: True
three:
  cmd.run:
    - name: echo three >> ROOT/box/log
    - require: [cmd: one]
skipped:
  cmd.run:
    - name: 'false'
    - parallel: True
    - onlyif: 'false'
missing:
  cmd.nothing:
    - parallel: True
last:
  test.nop:
    - require: [sls: u]
include: [u]
