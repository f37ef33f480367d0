ROOT/box/touched:
  file.touch
ROOT/box/file:
  file.touch
ROOT/box/none/touched:
  file.touch
ROOT/box/deep/touched:
  file.touch:
    - makedirs: True
ROOT/box/copy:
  file.copy:
    - source: ROOT/box/file
ROOT/box/copydeep/c:
  file.copy:
    - source: ROOT/box/file
    - makedirs: True
    - mode: '0600'
ROOT/box/copynone/c:
  file.copy:
    - source: ROOT/box/file
copydir:
  file.copy:
    - name: ROOT/box/dircopy
    - source: ROOT/box/dir
ROOT/box/target:
  file.copy:
    - source: ROOT/box/file
forced:
  file.copy:
    - name: ROOT/box/target2
    - source: ROOT/box/file
    - force: True
nosource:
  file.copy:
    - name: ROOT/box/z
    - source: ROOT/box/nosuch
ROOT/box/moved:
  file.rename:
    - source: ROOT/box/m1
ROOT/box/movedeep/m:
  file.rename:
    - source: ROOT/box/m2
    - makedirs: True
renameexists:
  file.rename:
    - name: ROOT/box/target
    - source: ROOT/box/file
renamenone:
  file.rename:
    - name: ROOT/box/zz
    - source: ROOT/box/nosuch
