one:
  file.prepend:
    - name: ROOT/box/a
    - text: |
        head one
        head two
src:
  file.prepend:
    - name: ROOT/box/a
    - source: salt://h.txt
new:
  file.prepend:
    - name: ROOT/box/deep/new
    - text: x
    - makedirs: True
