before:
  cmd.run:
    - name: echo before >> log
    - cwd: ROOT/box
    - prereq:
      - file: target
target:
  file.managed:
    - name: ROOT/box/target
    - contents: new
after:
  cmd.run:
    - name: echo after >> log
    - cwd: ROOT/box
    - onchanges:
      - file: target
chain:
  test.nop:
    - prereq:
      - cmd: before
