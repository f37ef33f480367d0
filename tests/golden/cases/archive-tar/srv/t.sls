gz:
  archive.extracted:
    - name: ROOT/box/out/gz
    - source: ROOT/box/top.tar.gz
xz:
  archive.extracted:
    - name: ROOT/box/out/xz/
    - source: file://ROOT/box/top.txz
    - if_missing: ROOT/box/out/xz/top/l
options:
  archive.extracted:
    - name: ROOT/box/out/options
    - source: ROOT/box/top.tar.gz
    - options: z --strip-components=1
    - enforce_toplevel: False
server:
  archive.extracted:
    - name: ROOT/box/out/server
    - source: salt://top.tar.gz
    - trim_output: 2
several:
  archive.extracted:
    - name: ROOT/box/out/several
    - source:
      - salt://nope.tar.gz
      - ROOT/box/nope.tar.gz
      - ROOT/box/top.tar.gz
flat:
  archive.extracted:
    - name: ROOT/box/out/flat
    - source: ROOT/box/flat/flat.tar
    - enforce_toplevel: False
format:
  archive.extracted:
    - name: ROOT/box/out/format
    - source: ROOT/box/noname
    - archive_format: TAR
