packages:
  virtualenv.managed:
    - name: ROOT/v/packages
    - venv_bin: virtualenv
    - clear: True
