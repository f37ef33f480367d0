ROOT/box/link:
  file.symlink:
    - target: ROOT/box/file
ROOT/box/rel:
  file.symlink:
    - target: file
ROOT/box/deep/link:
  file.symlink:
    - target: ../file
    - makedirs: True
ROOT/box/none/link:
  file.symlink:
    - target: x
ROOT/box/block:
  file.symlink:
    - target: x
ROOT/box/dirblock:
  file.symlink:
    - target: x
notarget:
  file.symlink:
    - name: ROOT/box/nt
