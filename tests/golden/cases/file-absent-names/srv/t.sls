clean:
  file.absent:
    - names:
      - ROOT/box/a
      - ROOT/box/b
      - ROOT/box/never
empty:
  file.absent:
    - name: ''
