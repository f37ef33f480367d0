new:
  pkgrepo.managed:
    - basedir: ROOT/box/repos
    - humanname: New repository
    - baseurl: http://c/$releasever
    - gpgcheck: True
    - gpgkey: http://c/key
    - comments: [why, '# not']
case:
  pkgrepo.managed:
    - basedir: ROOT/box/repos
    - mirrorlist: http://d
    - disabled: True
bad:
  pkgrepo.managed:
    - basedir: ROOT/box/repos
    - humanname: Bad
