none0:
  network.managed:
    - type: eth
    - proto: static
    - ipaddr: 10.0.0.2
    - netmask: 24
    - gateway: 10.0.0.1
    - dns:
      - 8.8.8.8
      - 8.8.4.4
    - ipv6proto: static
    - ipv6addr: fd00::2
    - ipv6netmask: 64
    - mtu: 1480
    - up_cmds:
      - echo up
    - noifupdown: True

none1:
  network.managed:
    - enabled: False
    - proto: static
    - ipaddr: 10.0.1.3
    - netmask: 255.255.255.0

none2:
  network.managed:
    - proto: dhcp
    - filename: none2
