moved:
  file.managed:
    - name: ROOT/box/moved
    - contents: |
        e
        f
        a
        b
        c
        d
        g
        h
rep:
  file.managed:
    - name: ROOT/box/rep
    - contents: |
        x
        y
        x
        x
        x
        z
