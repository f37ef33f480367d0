base:
  'other':
    - a
