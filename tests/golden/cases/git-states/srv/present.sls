bare:
  git.present:
    - name: ROOT/p/bare
work:
  git.present:
    - name: ROOT/p/work
    - bare: False
    - shared: group
full:
  git.present:
    - name: ROOT/full
