base:
  '*': [t]
