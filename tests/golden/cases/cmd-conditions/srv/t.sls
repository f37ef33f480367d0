cwd:
  cmd.run:
    - name: touch made
    - cwd: ROOT/box
    - creates: ROOT/box/made
cwd2:
  cmd.run:
    - name: touch made
    - cwd: ROOT/box
    - creates: ROOT/box/made
unless_cwd:
  cmd.run:
    - name: echo x
    - cwd: ROOT/box
    - unless: test -e made
onlyif_cwd:
  cmd.run:
    - name: echo x
    - cwd: ROOT/box
    - onlyif: test -e made
env:
  cmd.run:
    - name: echo x
    - env: [V: a]
    - onlyif: test "$V" = a
state_unless:
  test.nop:
    - unless:
      - test -e ROOT/box/made
state_fun:
  test.nop:
    - unless:
      - fun: file.file_exists
        args: [ROOT/box/made]
state_ret:
  test.nop:
    - onlyif:
      - fun: test.arg
        args: [1]
        get_return: args
bad_type:
  test.nop:
    - onlyif: [7]
shellness:
  test.nop:
    - onlyif: echo a | grep -q a && true
