head:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/head
    - force_reset: True
remote_changes:
  git.latest:
    - name: file://ROOT/up
    - target: ROOT/w/main
    - rev: main
    - force_reset: remote-changes
