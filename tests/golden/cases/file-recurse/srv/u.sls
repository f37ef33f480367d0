extra:
  cmd.run:
    - name: echo x > plain/extra; echo changed > plain/a.txt
    - cwd: ROOT/box
ROOT/box/plain:
  file.recurse:
    - source: salt://tree
    - clean: True
    - require:
      - cmd: extra
