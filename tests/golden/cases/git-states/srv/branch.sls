new:
  git.cloned:
    - name: ROOT/up
    - target: ROOT/w/plain
    - branch: dev
back:
  git.cloned:
    - name: ROOT/up
    - target: ROOT/w/dev
    - branch: main
nowhere:
  git.cloned:
    - name: ROOT/up
    - target: ROOT/w/dev
    - branch: nowhere
