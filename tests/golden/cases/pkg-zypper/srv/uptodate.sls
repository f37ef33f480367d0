all:
  pkg.uptodate: []
