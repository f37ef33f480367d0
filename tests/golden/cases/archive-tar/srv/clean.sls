clean:
  archive.extracted:
    - name: ROOT/box/out/gz
    - source: ROOT/box/top.tar.gz
    - clean: True
    - overwrite: True
parent:
  archive.extracted:
    - name: ROOT/box/out/xz
    - source: ROOT/box/top.tar.gz
    - clean_parent: True
    - overwrite: True
overwrite:
  archive.extracted:
    - name: ROOT/box/out/several
    - source: ROOT/box/top.tar.gz
    - overwrite: True
    - trim_output: True
