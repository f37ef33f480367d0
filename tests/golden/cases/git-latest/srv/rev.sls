commit:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/tag
    - rev: {{ salt['git.rev_parse']('ROOT/up', 'main') }}
dev:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/branch
    - rev: main
    - branch: main
back:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/upstream
    - rev: dev
    - remote: upstream
    - branch: dev
