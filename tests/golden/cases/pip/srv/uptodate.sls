all:
  pip.uptodate:
    - bin_env: ROOT/bin/pip
