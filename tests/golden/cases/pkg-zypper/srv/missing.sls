brine-none:
  pkg.installed: []
