base:
  '*':
    - nosuch
    - a
  'golden': a
