other:
  pkgrepo.managed:
    - basedir: ROOT/box/repos
    - humanname: Other
    - enabled: True
