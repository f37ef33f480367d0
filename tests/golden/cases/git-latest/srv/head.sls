elsewhere:
  git.latest:
    - name: file://ROOT/up
    - target: ROOT/w/head
    - rev: main
