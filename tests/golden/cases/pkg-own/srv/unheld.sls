several-unheld:
  pkg.unheld:
    - pkgs: [two, six, one]
