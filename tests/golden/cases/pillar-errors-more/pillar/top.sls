base:
  '*': [a, badinclude, mini, undefined]
