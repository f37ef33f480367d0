scanned:
  ssh_known_hosts.present:
    - name: web
    - config: ROOT/box/known
of_kind:
  ssh_known_hosts.present:
    - name: web
    - enc: ssh-ed25519
    - config: ROOT/box/sub/kind
given:
  ssh_known_hosts.present:
    - name: old
    - enc: ssh-rsa
    - key: dHdvMjIydHdv
    - config: ROOT/box/known
given_same:
  ssh_known_hosts.present:
    - name: other
    - enc: ssh-rsa
    - key: b25lMQ==
    - config: ROOT/box/known
fingerprint:
  ssh_known_hosts.present:
    - name: db
    - fingerprint: 97:2c:a2:53:ab:db:2f:85:bd:21:1c:cc:8b:34:40:69:66:c6:39:45:d3:85:c5:3d:1e:b3:05:d9:d3:04:b9:be
    - config: ROOT/box/known
fingerprint_wrong:
  ssh_known_hosts.present:
    - name: db
    - fingerprint: '00:11'
    - config: ROOT/box/known
port:
  ssh_known_hosts.present:
    - name: web
    - port: 2222
    - hash_known_hosts: False
    - config: ROOT/box/known
port_hashed:
  ssh_known_hosts.present:
    - name: web
    - port: 2222
    - config: ROOT/box/known2
silent:
  ssh_known_hosts.present:
    - name: silent
    - config: ROOT/box/known
relative:
  ssh_known_hosts.present:
    - name: web
    - config: known
nobody:
  ssh_known_hosts.present:
    - name: web
    - user: golden_nobody
user:
  ssh_known_hosts.present:
    - name: web
    - user: root
    - config: ROOT/box/root
gone:
  ssh_known_hosts.absent:
    - name: other
    - config: ROOT/box/known
never:
  ssh_known_hosts.absent:
    - name: never
    - config: ROOT/box/known
