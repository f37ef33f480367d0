ROOT/box/d:
  file.directory:
    - mode: 700
    - user: root
    - group: root
ROOT/box/clean:
  file.directory:
    - clean: True
    - require:
      - file: kept
kept:
  file.managed:
    - name: ROOT/box/clean/kept
    - contents: x
ROOT/box/rec:
  file.directory:
    - file_mode: 600
    - dir_mode: 711
    - recurse: [mode]
ROOT/box/nouser:
  file.directory:
    - user: nosuch
ROOT/box/badrec:
  file.directory:
    - recurse: [nosuch]
