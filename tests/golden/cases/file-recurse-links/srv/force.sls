ROOT/box/tree:
  file.recurse:
    - source: salt://one
    - keep_symlinks: True
    - force_symlinks: {{ pillar.get('force', False) }}
    - clean: True
    - include_empty: True
