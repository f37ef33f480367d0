water:
  pip.removed:
    - bin_env: ROOT/bin/pip
never:
  pip.removed:
    - bin_env: ROOT/bin/pip
