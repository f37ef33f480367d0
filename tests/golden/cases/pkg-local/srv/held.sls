brine-case:
  pkg.held: []
