brine-case:
  pkg.installed: []
