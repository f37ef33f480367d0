base:
  '*': [common]
  'web*': [web]
