plain:
  virtualenv.managed:
    - name: ROOT/v/plain
    - venv_bin: virtualenv
packages:
  virtualenv.managed:
    - name: ROOT/v/packages
    - venv_bin: virtualenv
    - pip_pkgs:
      - water
broken:
  virtualenv.managed:
    - name: ROOT/v/broken
    - venv_bin: virtualenv
missing:
  virtualenv.managed:
    - name: ROOT/v/missing
    - venv_bin: virtualenv
    - requirements: salt://nope.txt
