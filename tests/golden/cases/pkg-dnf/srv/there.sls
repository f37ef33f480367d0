there:
  pkg.installed:
    - pkgs: [{brine-one: '1.0'}]
    - hold: True
