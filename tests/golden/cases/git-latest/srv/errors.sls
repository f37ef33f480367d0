no_target:
  git.latest:
    - name: ROOT/up
relative:
  git.latest:
    - name: ROOT/up
    - target: relative
no_rev:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/e
    - rev: ''
reset:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/e
    - force_reset: sometimes
file:
  git.latest:
    - name: ROOT/up
    - target: ROOT/file
bare_rev:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/e
    - rev: main
    - bare: True
missing:
  git.latest:
    - name: ROOT/nothing
    - target: ROOT/w/e
no_such_rev:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/e
    - rev: nowhere
full:
  git.latest:
    - name: ROOT/up
    - target: ROOT/full
depth:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/e
    - depth: 1
login:
  git.latest:
    - name: http://127.0.0.1:1/x
    - target: ROOT/w/e
    - https_user: me
