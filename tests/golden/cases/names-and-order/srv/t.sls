dirs:
  file.directory:
    - names:
      - ROOT/box/a
      - ROOT/box/b:
        - mode: '0700'
      - ROOT/box/c
    - mode: '0711'
    - require_in:
      - test: last
packages:
  test.nop:
    - names: [x, y]
    - order: last
last:
  test.nop:
    - require:
      - file: dirs
byname:
  test.nop:
    - require:
      - file: ROOT/box/b
      - test: x
sameid:
  test.nop: []
  cmd.run:
    - name: echo {{ sls }}
    - require:
      - test: sameid
unicode_ü:
  test.nop:
    - name: "spaces and: colons"
