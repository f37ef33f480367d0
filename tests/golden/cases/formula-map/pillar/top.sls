base:
  '*': [tpl]
