other_url:
  git.latest:
    - name: file://ROOT/up
    - target: ROOT/w/head
    - rev: dev
    - branch: dev
empty:
  git.latest:
    - name: ROOT/empty
    - target: ROOT/w/empty
