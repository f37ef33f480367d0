ROOT/box/old:
  file.touch
ROOT/box/old2:
  file.touch:
    - makedirs: True
ROOT/box:
  file.touch
relative:
  file.touch
