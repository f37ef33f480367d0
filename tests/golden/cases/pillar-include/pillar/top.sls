base:
  '*':
    - a.b
    - ignored
    - ignore_missing: True
