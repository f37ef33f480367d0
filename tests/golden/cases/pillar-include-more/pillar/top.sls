base:
  '*': [a, plain, 'many.*']
  'gold*':
    - ignore_missing: True
    - nowhere
    - late
    - order: 5
  'golde*':
    - order: 2
    - early
