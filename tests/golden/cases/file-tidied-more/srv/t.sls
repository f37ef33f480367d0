ROOT/box/d:
  file.tidied:
    - age: 5
    - size: 1k
    - time_comparison: mtime
    - matches: ['.*\.tmp$']
    - rmlinks: False
