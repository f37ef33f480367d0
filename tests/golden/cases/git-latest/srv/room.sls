full:
  git.latest:
    - name: ROOT/up
    - target: ROOT/full
    - force_clone: True
