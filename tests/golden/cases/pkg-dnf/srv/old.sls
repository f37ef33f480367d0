brine-one:
  pkg.installed:
    - version: 1.0-1
    - update_holds: True
    - hold: False
brine-two:
  pkg.installed:
    - version: 1.2-1
    - hold: True
