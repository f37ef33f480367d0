ROOT/box/d:
  file.directory
ROOT/box/deep/er/d:
  file.directory:
    - makedirs: True
    - mode: 750
ROOT/box/none/d:
  file.directory:
    - mode: 755
named:
  file.directory:
    - names:
      - ROOT/box/n1
      - ROOT/box/n2:
        - mode: '0700'
    - mode: '0711'
ROOT/box/isfile:
  file.directory
ROOT/box/forced:
  file.directory:
    - force: True
