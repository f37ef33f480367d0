force:
  pip.installed:
    - name: water
    - force_reinstall: True
    - bin_env: ROOT/bin/pip
ignore:
  pip.installed:
    - name: earth
    - ignore_installed: True
    - bin_env: ROOT/bin/pip
downgrade:
  pip.installed:
    - name: water==1.0
    - bin_env: ROOT/bin/pip
upgrade_pkgs:
  pip.installed:
    - pkgs: [air, earth]
    - upgrade: True
    - bin_env: ROOT/bin/pip
