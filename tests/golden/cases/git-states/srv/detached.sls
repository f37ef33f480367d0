tag:
  git.detached:
    - name: ROOT/up
    - target: ROOT/w/tag
    - rev: v1
branch:
  git.detached:
    - name: ROOT/up
    - target: ROOT/w/detached
    - rev: dev
    - hard_reset: True
commit:
  git.detached:
    - name: ROOT/up
    - target: ROOT/w/commit
    - rev: {{ salt['git.rev_parse']('ROOT/up', 'v1') }}
nowhere:
  git.detached:
    - name: ROOT/up
    - target: ROOT/w/nowhere
    - rev: nowhere
full:
  git.detached:
    - name: ROOT/up
    - target: ROOT/full
    - rev: v1
relative:
  git.detached:
    - name: ROOT/up
    - target: x
    - rev: v1
