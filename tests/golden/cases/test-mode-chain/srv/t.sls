conf:
  file.managed:
    - name: ROOT/box/conf
    - contents: x
run:
  cmd.run:
    - name: echo x
    - onchanges:
      - file: conf
wait:
  cmd.wait:
    - name: echo x
    - watch:
      - file: conf
need:
  test.nop:
    - require:
      - cmd: run
onfail:
  test.nop:
    - onfail:
      - file: conf
dir:
  file.directory:
    - name: ROOT/box/a/b
    - makedirs: True
inside:
  file.managed:
    - name: ROOT/box/a/b/c
    - contents: x
    - require:
      - file: dir
