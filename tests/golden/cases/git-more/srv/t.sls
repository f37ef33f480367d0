user:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/user
    - rev: main
    - user: root
{% if not opts.test %}
mirror:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/mirror
    - mirror: True
{% endif %}
no_tags:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/notags
    - rev: main
    - fetch_tags: False
sync_tags:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/synctags
    - rev: main
    - sync_tags: False
annotated:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/annotated
    - rev: v2
short:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/short
    - rev: main
    - force_fetch: True
    - force_checkout: True
    - submodules: True
remote_branch:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/remote
    - rev: dev
    - remote: other
spaces:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/with blank
    - rev: main
bad_kwarg:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/user
    - nosuch: x
numeric:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/numeric
    - rev: 3
nouser:
  git.latest:
    - name: ROOT/up
    - target: ROOT/w/nouser
    - user: golden_nobody
