own:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/short
    - rev: main
own_forced:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/short
    - rev: main
    - force_reset: True
