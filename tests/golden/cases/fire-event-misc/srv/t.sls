a:
  test.succeed_with_changes:
    - fire_event: True
b:
  test.succeed_with_changes:
    - fire_event: custom/tag
c:
  test.succeed_with_changes:
    - no_log: True
    - comment: secret
d:
  test.nop:
    - reload_modules: True
e:
  file.managed:
    - name: ROOT/box/um
    - contents: x
    - umask: '077'
f:
  cmd.run:
    - name: touch um2; umask
    - cwd: ROOT/box
    - umask: '027'
g:
  test.nop:
    - umask: zz
h:
  test.nop:
    - saltenv: base
p1:
  test.succeed_with_changes:
    - parallel: True
p2:
  test.nop:
    - parallel: True
    - require:
      - test: p1
