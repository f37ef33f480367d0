{% set follow = pillar.get('follow', False) %}
ROOT/box/tree:
  file.directory:
    - user: nobody
    - group: nogroup
    - dir_mode: '0711'
    - file_mode: '0640'
    - recurse: [user, group, mode]
    - follow_symlinks: {{ follow }}
ROOT/box/link:
  file.directory:
    - mode: '0700'
    - user: nobody
    - follow_symlinks: {{ follow }}
