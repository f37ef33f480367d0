true_form:
  test.nop:
    - retry: True
until:
  cmd.run:
    - name: 'echo x >> count; test $(wc -l < count) -ge 2'
    - cwd: ROOT/box
    - retry:
        attempts: 3
        interval: 0
        until: True
        splay: 0
unlessed:
  test.fail_without_changes:
    - unless: 'true'
    - retry: {attempts: 2, interval: 0}
dependent:
  test.nop:
    - require:
      - cmd: until
