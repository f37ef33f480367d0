brine-one:
  pkg.installed:
    - version: '>=1.1'
