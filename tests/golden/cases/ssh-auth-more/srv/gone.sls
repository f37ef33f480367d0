names:
  ssh_auth.absent:
    - user: root
    - names: [bmFtZW9u, bmFtZXR3, bmV2ZXI1]
    - config: ROOT/box/more
options:
  ssh_auth.absent:
    - user: root
    - name: command="echo a b",no-pty ssh-rsa Y29tbWFu c
    - config: ROOT/box/sk
no_file:
  ssh_auth.absent:
    - user: root
    - name: b25lMQ==
    - config: ROOT/box/nofile
source:
  ssh_auth.absent:
    - user: root
    - source: salt://two
    - config: ROOT/box/two
nobody:
  ssh_auth.absent:
    - user: golden_nobody
    - name: b25lMQ==
