base:
  '*': [a]
  'I@json:1': [seen]
