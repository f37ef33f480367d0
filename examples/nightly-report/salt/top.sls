base:
  '*': [motd]
