replaced:
  pkg.held:
    - pkgs: [one]
    - replace: True
