base:
  '*': [common, shared]
dev:
  '*': [from_base]
