brine-case:
  pkg.installed:
    - version: '1.0'
    - refresh: True
