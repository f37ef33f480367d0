managed:
  ssh_auth.manage:
    - user: root
    - config: ROOT/box/managed
    - ssh_keys:
      - b25lMQ==
      - ssh-ed25519 Zm91cjQ0Zm91cjQ0 four
