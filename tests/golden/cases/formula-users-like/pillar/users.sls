groups:
  wheel: {gid: 500}
  gone: {absent: True}
users:
  ann:
    uid: 1001
    sudouser: True
    groups: [wheel, dev]
    ssh_auth: ['ssh-rsa AAA "x" a@b', "ssh-ed25519 BBB"]
  bob: {absent: True}
  root: {}
