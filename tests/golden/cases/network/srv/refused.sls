kind:
  network.managed:
    - name: none3
    - type: token

slave:
  network.managed:
    - name: none4
    - type: slave

duplex:
  network.managed:
    - name: none5
    - proto: dhcp
    - duplex: most

routes:
  network.routes:
    - name: none6

networking:
  network.system:
    - enabled: sometimes
