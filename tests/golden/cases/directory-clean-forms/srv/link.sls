link:
  file.directory:
    - name: ROOT/box/link
    - force: True
    - allow_symlink: False
