ROOT/box/remote:
  archive.extracted:
    - source: http://127.0.0.1:9/top.tar

of-server:
  archive.extracted:
    - name: ROOT/box/of-server
    - source: salt://top.tar
    - use_etag: True
