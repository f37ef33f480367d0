relative:
  archive.extracted:
    - name: out
    - source: ROOT/box/top.tar.gz
file:
  archive.extracted:
    - name: ROOT/box/top.tar.gz
    - source: ROOT/box/top.tar.gz
missing:
  archive.extracted:
    - name: ROOT/box/out/missing
    - source: ROOT/box/nope.tar.gz
guess:
  archive.extracted:
    - name: ROOT/box/out/guess
    - source: ROOT/box/noname
invalid:
  archive.extracted:
    - name: ROOT/box/out/invalid
    - source: ROOT/box/noname
    - archive_format: ARJ
bomb:
  archive.extracted:
    - name: ROOT/box/out/bomb
    - source: ROOT/box/flat/flat.tar
broken:
  archive.extracted:
    - name: ROOT/box/out/broken
    - source: ROOT/box/broken.tar
broken_owner:
  archive.extracted:
    - name: ROOT/box/out/broken
    - source: ROOT/box/broken.tar
    - user: root
    - if_missing: ROOT/box/out/nope
user:
  archive.extracted:
    - name: ROOT/box/out/user
    - source: ROOT/box/top.tar.gz
    - user: nobody_here
group:
  archive.extracted:
    - name: ROOT/box/out/user
    - source: ROOT/box/top.tar.gz
    - group: nobody_here
password:
  archive.extracted:
    - name: ROOT/box/out/user
    - source: ROOT/box/top.tar.gz
    - password: x
if_missing:
  archive.extracted:
    - name: ROOT/box/out/user
    - source: ROOT/box/top.tar.gz
    - if_missing: relative
ownership:
  archive.extracted:
    - name: ROOT/box/out/user
    - source: ROOT/box/top.tar.gz
    - enforce_ownership_on: /etc
both:
  archive.extracted:
    - name: ROOT/box/out/user
    - source: ROOT/box/top.tar.gz
    - clean: True
    - clean_parent: True
none:
  archive.extracted:
    - name: ROOT/box/out/several
    - source:
      - salt://nope.tar.gz
      - ROOT/box/nope.tar.gz
hash:
  archive.extracted:
    - name: ROOT/box/out/hash
    - source: ROOT/box/top.tar.gz
    - source_hash: sha256=0000000000000000000000000000000000000000000000000000000000000000
both_skips:
  archive.extracted:
    - name: ROOT/box/out/hash
    - source: ROOT/box/top.tar.gz
    - skip_verify: True
    - skip_files_list_verify: True
there:
  archive.extracted:
    - name: ROOT/box/out/hash
    - source: ROOT/box/top.tar.gz
    - if_missing: /etc/passwd
keeps:
  archive.extracted:
    - name: ROOT/box/out/gz
    - source: ROOT/box/top.tar.gz
    - keep: True
    - keep_source: True
    - source_hash_update: True
badopts:
  archive.extracted:
    - name: ROOT/box/out/badopts
    - source: ROOT/box/top.tar.gz
    - options: --no-such-option
    - enforce_toplevel: False
