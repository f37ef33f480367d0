gone:
  pkg.removed:
    - pkgs: [brine-one, brine-none]
brine-two:
  pkg.purged: []
