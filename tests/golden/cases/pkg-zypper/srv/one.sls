brine-one:
  pkg.installed:
    - version: 1.0-1
