brine-case:
  pkg.unheld: []
