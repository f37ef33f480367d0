missing:
  ssh_auth.present:
    - user: root
    - source: salt://never
    - config: ROOT/box/keys
