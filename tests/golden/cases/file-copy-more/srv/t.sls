preserve:
  file.copy:
    - name: ROOT/box/p
    - source: ROOT/box/src
    - preserve: True
owned:
  file.copy:
    - name: ROOT/box/o
    - source: ROOT/box/src
    - user: nobody
    - mode: '0600'
forced:
  file.copy:
    - name: ROOT/box/dst
    - source: ROOT/box/src
    - force: True
relative:
  file.copy:
    - name: rel
    - source: ROOT/box/src
relsource:
  file.copy:
    - name: ROOT/box/rs
    - source: src
