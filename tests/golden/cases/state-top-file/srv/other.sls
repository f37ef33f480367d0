base:
  '*': [u]
  'nobody': [t]
