base:
  "*": [a]
