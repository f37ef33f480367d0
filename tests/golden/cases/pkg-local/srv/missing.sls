brine-case-never:
  pkg.installed: []
