earth:
  pip.installed:
    - upgrade: True
    - bin_env: ROOT/bin/pip
water:
  pip.installed:
    - upgrade: True
    - bin_env: ROOT/bin/pip
newer:
  pip.installed:
    - name: wind>1
    - bin_env: ROOT/bin/pip
