wrong:
  archive.extracted:
    - name: ROOT/box/wrong
    - source: ROOT/box/top.tar.gz
clean_parent:
  archive.extracted:
    - name: ROOT/box/wrong
    - source: ROOT/box/top.tar.gz
    - clean_parent: True
