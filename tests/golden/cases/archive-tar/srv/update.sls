update:
  archive.extracted:
    - name: ROOT/box/out/gz
    - source: ROOT/box/top.tar.gz
    - source_hash: {{ salt['file.get_hash']('ROOT/box/top.tar.gz') }}
    - source_hash_update: True
