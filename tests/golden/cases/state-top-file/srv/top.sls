base:
  '*': [t, sub]
