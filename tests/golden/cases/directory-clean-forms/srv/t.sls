pattern:
  file.directory:
    - name: ROOT/box/c
    - clean: True
    - exclude_pat: 'E@^stray(|/keep)$'
glob:
  file.directory:
    - name: ROOT/box/d
    - clean: True
    - exclude_pat: keep
backed:
  file.directory:
    - name: ROOT/box/backed
    - allow_symlink: False
    - backupname: ROOT/box/backed.old
plain:
  file.directory:
    - name: ROOT/box/plain
    - allow_symlink: False
deep:
  file.directory:
    - name: ROOT/box/deep
    - dir_mode: '0555'
    - max_depth: 1
    - recurse: [mode]
