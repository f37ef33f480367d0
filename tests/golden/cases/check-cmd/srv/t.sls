ok:
  cmd.run:
    - name: 'false'
    - check_cmd: ['true']
bad:
  cmd.run:
    - name: 'true'
    - check_cmd: ['false']
file:
  file.managed:
    - name: ROOT/box/f
    - contents: bad content
    - check_cmd: grep -q good
file_ok:
  file.managed:
    - name: ROOT/box/g
    - contents: good content
    - check_cmd: grep -q good
string:
  test.nop:
    - check_cmd: 'true'
after:
  test.nop:
    - require:
      - cmd: bad
