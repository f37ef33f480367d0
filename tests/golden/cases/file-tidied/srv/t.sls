ROOT/box/d:
  file.tidied:
    - age: 5
    - matches: ['.*\.log']
    - rmdirs: True
ROOT/box/nosuch:
  file.tidied
relative:
  file.tidied
