comment_changed:
  ssh_auth.present:
    - name: b25lMQ==
    - user: root
    - comment: other words here
    - config: ROOT/box/keys
options_changed:
  ssh_auth.present:
    - name: dHdvMjIydHdv
    - user: root
    - enc: ssh-ed25519
    - options: [no-pty]
    - config: ROOT/box/keys
enc_changed:
  ssh_auth.present:
    - name: dGhyZWUz
    - user: root
    - enc: ecdsa
    - config: ROOT/box/keys
names:
  ssh_auth.present:
    - user: root
    - enc: ed25519
    - names:
      - bmFtZW9u
      - ssh-rsa bmFtZXR3 two
    - config: ROOT/box/more
tokens:
  ssh_auth.present:
    - name: dG9rZW4x
    - user: root
    - config: 'ROOT/box/%u/%%keys'
source_with_options:
  ssh_auth.present:
    - user: root
    - source: salt://two
    - config: ROOT/box/two
sk:
  ssh_auth.present:
    - name: sk-ssh-ed25519@openssh.com c2sxc2sx yubi
    - user: root
    - config: ROOT/box/sk
bad_enc:
  ssh_auth.present:
    - name: b25lMQ==
    - user: root
    - enc: nosuch
    - config: ROOT/box/sk
fingerprint:
  ssh_auth.present:
    - name: b25lMQ==
    - user: root
    - fingerprint_hash_type: md5
    - config: ROOT/box/sk
options_line:
  ssh_auth.present:
    - name: command="echo a b",no-pty ssh-rsa Y29tbWFu c
    - user: root
    - config: ROOT/box/sk
