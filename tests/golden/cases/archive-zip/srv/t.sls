plain:
  archive.extracted:
    - name: ROOT/box/out/plain
    - source: ROOT/box/plain.zip
links:
  archive.extracted:
    - name: ROOT/box/out/links
    - source: ROOT/box/top.zip
cmd:
  archive.extracted:
    - name: ROOT/box/out/cmd_state
    - source: ROOT/box/plain.zip
    - use_cmd_unzip: True
options:
  archive.extracted:
    - name: ROOT/box/out/opts
    - source: ROOT/box/plain.zip
    - options: -q
perms:
  archive.extracted:
    - name: ROOT/box/out/perms
    - source: ROOT/box/plain.zip
    - extract_perms: False
secret:
  archive.extracted:
    - name: ROOT/box/out/secret
    - source: ROOT/box/secret.zip
    - password: secret
no_password:
  archive.extracted:
    - name: ROOT/box/out/nosecret
    - source: ROOT/box/secret.zip
no_unzip:
  archive.extracted:
    - name: ROOT/box/out/opts
    - source: ROOT/box/plain.zip
    - options: -o
    - use_cmd_unzip: False
