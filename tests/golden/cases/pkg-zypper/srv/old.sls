brine-two:
  pkg.installed:
    - version: '2:1.0-3'
