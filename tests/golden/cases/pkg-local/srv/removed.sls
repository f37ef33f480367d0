brine-case:
  pkg.removed: []
