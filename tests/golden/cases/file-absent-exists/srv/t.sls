ROOT/box/link:
  file.absent
ROOT/box/broken:
  file.absent
ROOT/box/file:
  file.absent
ROOT/box/dir:
  file.absent
ROOT/box/never:
  file.absent
relative:
  file.absent
/:
  file.absent
e1:
  file.exists:
    - name: ROOT/srv/t.sls
e2:
  file.exists:
    - name: ROOT/srv/no
m1:
  file.missing:
    - name: ROOT/srv/no
m2:
  file.missing:
    - name: ROOT/srv/t.sls
