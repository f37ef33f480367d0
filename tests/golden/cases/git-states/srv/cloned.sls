plain:
  git.cloned:
    - name: ROOT/up
    - target: ROOT/w/plain
dev:
  git.cloned:
    - name: ROOT/up
    - target: ROOT/w/dev
    - branch: dev
no_target:
  git.cloned:
    - name: ROOT/up
relative:
  git.cloned:
    - name: ROOT/up
    - target: x
missing:
  git.cloned:
    - name: ROOT/nothing
    - target: ROOT/w/missing
no_repository:
  git.cloned:
    - name: ROOT/up
    - target: ROOT/full
