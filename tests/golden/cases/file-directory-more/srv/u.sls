ROOT/box/keep:
  file.directory:
    - clean: True
    - exclude_pat: '*.conf'
ROOT/box/depth:
  file.directory:
    - user: nobody
    - recurse: [user]
    - max_depth: 0
ROOT/box/user:
  file.directory:
    - user: root
    - mode: '0755'
