brine-case:
  pkg.latest:
    - refresh: True
