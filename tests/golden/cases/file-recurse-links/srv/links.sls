ROOT/box/tree:
  file.recurse:
    - source: salt://one
    - keep_symlinks: True
    - sym_mode: '0755'
