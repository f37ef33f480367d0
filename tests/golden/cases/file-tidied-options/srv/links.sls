follows:
  file.tidied:
    - name: ROOT/box/t
    - matches: ['x', 'a']
    - followlinks: True
    - rmlinks: False
