water:
  pip.installed:
    - bin_env: ROOT/bin/pip
exact:
  pip.installed:
    - name: earth==1.0
    - bin_env: ROOT/bin/pip
several:
  pip.installed:
    - pkgs:
      - Fire_Wood >= 1.0, <2
      - wind
    - bin_env: ROOT/bin/pip
bad:
  pip.installed:
    - name: badger
    - bin_env: ROOT/bin/pip
equals:
  pip.installed:
    - name: x=1
    - bin_env: ROOT/bin/pip
no_list:
  pip.installed:
    - pkgs: x
    - bin_env: ROOT/bin/pip
requirements:
  pip.installed:
    - requirements: ROOT/srv/r.txt
    - bin_env: ROOT/bin/pip
editable:
  pip.installed:
    - editable: git+https://example.org/x#egg=x
    - bin_env: ROOT/bin/pip
user:
  pip.installed:
    - name: water
    - user: nobody_here
    - bin_env: ROOT/bin/pip
