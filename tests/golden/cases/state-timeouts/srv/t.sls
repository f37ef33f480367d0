slow:
  cmd.run:
    - name: sleep 20
    - timeout: 1
as_nobody:
  cmd.run:
    - name: id -un; umask
    - runas: nobody
    - cwd: /
    - umask: '077'
file_as_umask:
  file.touch:
    - name: ROOT/box/made
    - umask: '077'
bad_umask:
  test.nop:
    - umask: zz
conditioned:
  test.nop:
    - onlyif: test "$(id -un)" = nobody
    - runas: nobody
    - cwd: /
