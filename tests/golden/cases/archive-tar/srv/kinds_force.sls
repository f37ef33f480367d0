force:
  archive.extracted:
    - name: ROOT/box/wrong
    - source: ROOT/box/top.tar.gz
    - force: True
