base:
  '*': [p, sub.q]
