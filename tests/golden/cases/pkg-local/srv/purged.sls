brine-case:
  pkg.purged: []
