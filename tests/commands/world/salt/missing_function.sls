one:
  nosuch.installed: []
two:
  file.nosuch: []
