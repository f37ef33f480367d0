either:
  file.tidied:
    - name: ROOT/box/t
    - age: 5
    - size: 1k
    - rmdirs: True
    - time_comparison: mtime
all:
  file.tidied:
    - name: ROOT/box/t
    - rmdirs: True
    - rmlinks: False
