system:
  pkg.uptodate:
    - refresh: True
