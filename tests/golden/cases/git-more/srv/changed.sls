user:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/user
    - rev: dev
annotated:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/annotated
    - rev: main
    - branch: main
short:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/short
    - rev: v2
