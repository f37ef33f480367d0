ROOT/box/link:
  file.hardlink:
    - target: ROOT/box/other
ROOT/box/block:
  file.hardlink:
    - target: ROOT/box/file
    - force: True
ROOT/box/x:
  file.hardlink:
    - target: relative
