ROOT/box/owner:
  file.managed:
    - contents: x
    - user: root
    - group: root
ROOT/box/s1:
  file.managed:
    - mode: '0600'
    - user: nobody
