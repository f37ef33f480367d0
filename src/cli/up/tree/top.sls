base:
  '*':
    - hello
  'web*':
    - web
