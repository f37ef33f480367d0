src:
  file.managed:
    - name: ROOT/box/src
    - contents: shared
    - mode: '0600'
    - require:
      - test: nothing
nothing: test.nop
dst:
  file.managed:
    - name: ROOT/box/dst
    - use:
      - file: src
own:
  file.managed:
    - name: ROOT/box/own
    - mode: '0644'
    - use:
      - file: src
other:
  file.directory:
    - name: ROOT/box/dir
    - use:
      - file: src
