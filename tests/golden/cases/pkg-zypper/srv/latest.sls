newest:
  pkg.latest:
    - pkgs: [brine-two]
