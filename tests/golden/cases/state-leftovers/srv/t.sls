include: [u]
a:
  test.succeed_with_changes: []
b:
  test.nop:
    - require: [test: inner]
c:
  cmd.run:
    - name: umask; id -u
    - umask: '027'
