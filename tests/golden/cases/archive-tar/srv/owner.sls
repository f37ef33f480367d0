owner:
  archive.extracted:
    - name: ROOT/box/out/gz
    - source: ROOT/box/top.tar.gz
    - user: daemon
    - group: daemon
owner_on:
  archive.extracted:
    - name: ROOT/box/out/server
    - source: ROOT/box/top.tar.gz
    - user: daemon
    - enforce_ownership_on: ROOT/box/out/server/top/sub
owner_missing:
  archive.extracted:
    - name: ROOT/box/out/options
    - source: ROOT/box/flat/flat.tar
    - enforce_toplevel: False
    - group: daemon
