one:
  pkg.latest:
    - refresh: True
several-latest:
  pkg.latest:
    - pkgs: [three, two, seven]
