ROOT/box/dir:
  file.directory:
    - makedirs: True
    - mode: 755
dir-link:
  file.symlink:
    - name: ROOT/box/dir-link
    - target: ROOT/box/dir
allow-link:
  file.directory:
    - name: ROOT/box/dir-link
    - allow_symlink: True
not-allow-link:
  file.directory:
    - name: ROOT/box/dir-link
    - allow_symlink: False
follow-link:
  file.directory:
    - name: ROOT/box/dir-link
    - follow_symlinks: True
    - mode: 711
tree:
  file.recurse:
    - name: ROOT/box/tree
    - source: salt://tree
    - maxdepth: 1
    - defaults: {a: b}
    - backup: minion
    - replace: False
    - keep_source: False
    - sym_mode: 777
tree-deep:
  file.recurse:
    - name: ROOT/box/tree-deep
    - source: salt://tree
    - maxdepth: 0
    - file_mode: keep
    - dir_mode: 700
hardlink:
  file.hardlink:
    - name: ROOT/box/made/hard
    - target: ROOT/box/touched
    - makedirs: True
    - user: root
    - group: root
copy-sub:
  file.copy:
    - name: ROOT/box/dir
    - source: ROOT/box/touched
    - subdir: True
    - preserve: True
copy-dirmode:
  file.copy:
    - name: ROOT/box/made2/copy
    - source: ROOT/box/touched
    - makedirs: True
    - mode: 600
    - group: root
symlink-mode:
  file.symlink:
    - name: ROOT/box/made3/link
    - target: ROOT/box/touched
    - makedirs: True
    - atomic: True
symlink-inherit:
  file.symlink:
    - name: ROOT/box/made3/link2
    - target: ROOT/box/touched
    - inherit_user_and_group: True
    - follow_symlinks: False
    - disallow_copy_and_unlink: True
symlink-backup:
  file.symlink:
    - name: ROOT/box/tree/a
    - target: ROOT/box/touched
    - backupname: a.bak
serialize:
  file.serialize:
    - name: ROOT/box/ser.json
    - dataset: {b: 1, a: [1, 2]}
    - serializer: json
    - encoding: utf-8
    - makedirs: True
    - mode: 640
    - user: root
    - group: root
    - backup: minion
serialize-merge:
  file.serialize:
    - name: ROOT/box/ser.json
    - dataset: {c: 2}
    - serializer: json
    - merge_if_exists: True
    - serializer_opts: [{indent: 4}]
    - deserializer_opts: [{strict: False}]
serialize-no-create:
  file.serialize:
    - name: ROOT/box/ser2.json
    - dataset: {c: 2}
    - create: False
cached-missing:
  file.cached:
    - name: salt://nosuch.txt
