names:
  pip.removed:
    - names: [water, never]
    - bin_env: ROOT/bin/pip
version:
  pip.removed:
    - name: earth==2.0
    - bin_env: ROOT/bin/pip
