new_remote:
  git.latest:
    - name: file://ROOT/up
    - target: ROOT/w/tag
    - rev: dev
    - remote: second
    - force_reset: True
