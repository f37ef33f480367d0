salt://x.txt:
  file.cached
salt://nosuch:
  file.cached
