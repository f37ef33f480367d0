full:
  git.present:
    - name: ROOT/full
    - force: True
