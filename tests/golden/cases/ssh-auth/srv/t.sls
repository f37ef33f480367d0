same:
  ssh_auth.present:
    - name: b25lMQ==
    - user: root
    - comment: one@host
    - config: ROOT/box/keys
updated:
  ssh_auth.present:
    - name: ssh-ed25519 dHdvMjIydHdv second one
    - user: root
    - config: ROOT/box/keys
new:
  ssh_auth.present:
    - name: bmV3NQ== with comment
    - user: root
    - enc: ed25519
    - options: [no-pty, 'from="10.0.0.1"']
    - config: ROOT/box/keys
new_line:
  ssh_auth.present:
    - name: no-X11-forwarding ecdsa-sha2-nistp256 bGluZQ== fred
    - user: root
    - config: 'ROOT/box/keys'
new_file:
  ssh_auth.present:
    - name: b25lMQ==
    - user: root
    - config: ROOT/box/sub/keys
nobody:
  ssh_auth.present:
    - name: b25lMQ==
    - user: golden_nobody
invalid:
  ssh_auth.present:
    - name: not+base64!
    - user: root
    - config: ROOT/box/keys
source:
  ssh_auth.present:
    - user: root
    - source: salt://keyfile
    - config: ROOT/box/keys
source_options:
  ssh_auth.present:
    - user: root
    - source: salt://keyfile
    - options: [no-pty]
    - config: ROOT/box/more
source_bad:
  ssh_auth.present:
    - user: root
    - source: salt://bad
    - config: ROOT/box/keys
gone:
  ssh_auth.absent:
    - name: ssh-dss dGhyZWUz
    - user: root
    - config: ROOT/box/keys
never:
  ssh_auth.absent:
    - name: bmV2ZXI1
    - user: root
    - config: ROOT/box/keys
source_gone:
  ssh_auth.absent:
    - user: root
    - source: salt://keyfile
    - config: ROOT/box/more
