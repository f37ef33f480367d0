head:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/head
main:
  git.latest:
    - name: file://ROOT/up
    - target: ROOT/w/main
    - rev: main
tag:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/tag
    - rev: v1
branch:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/branch
    - rev: dev
    - branch: mine
mirror:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/bare
    - bare: {{ not salt['file.directory_exists']('ROOT/w/bare') }}
    - unless: test -d ROOT/w/bare
depth:
  git.latest:
    - name: file://ROOT/up
    - target: ROOT/w/depth
    - rev: dev
    - depth: 1
    - unless: test -d ROOT/w/depth
still:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/still
    - rev: main
    - update_head: False
upstream:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/upstream
    - rev: main
    - remote: upstream
