ROOT/box/link:
  file.symlink:
    - target: ROOT/box/other
ROOT/box/block:
  file.symlink:
    - target: file
    - force: True
ROOT/box/backup:
  file.symlink:
    - target: file
    - backupname: x
relative:
  file.symlink:
    - target: x
