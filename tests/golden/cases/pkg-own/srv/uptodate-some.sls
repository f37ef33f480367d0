some:
  pkg.uptodate:
    - pkgs: [two, three]
