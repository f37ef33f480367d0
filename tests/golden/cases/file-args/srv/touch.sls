touch:
  file.touch:
    - name: ROOT/box/touched
    - atime: 1000000000
    - mtime: 1000000001
