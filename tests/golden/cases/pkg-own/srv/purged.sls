one:
  pkg.purged: []
several-purged:
  pkg.purged:
    - pkgs: [two, five, nosuch]
