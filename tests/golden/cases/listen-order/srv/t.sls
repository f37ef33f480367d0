one:
  file.managed:
    - name: ROOT/box/one
    - contents: x
    - listen_in:
      - cmd: late
late:
  cmd.wait:
    - name: echo late
    - listen:
      - test: two
two: test.succeed_with_changes
three:
  cmd.run:
    - name: echo three
    - listen:
      - file: one
fails:
  test.fail_without_changes:
    - listen:
      - test: two
