ROOT/box/link:
  file.hardlink:
    - target: ROOT/box/file
ROOT/box/deep/link:
  file.hardlink:
    - target: ROOT/box/file
    - makedirs: True
ROOT/box/none/link:
  file.hardlink:
    - target: ROOT/box/file
ROOT/box/block:
  file.hardlink:
    - target: ROOT/box/file
ROOT/box/gone:
  file.hardlink:
    - target: ROOT/box/nosuch
relative:
  file.hardlink:
    - target: ROOT/box/file
