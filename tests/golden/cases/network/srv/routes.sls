none0:
  network.routes:
    - require_reboot: True
    - routes:
      - name: office
        ipaddr: 10.2.0.0
        netmask: 255.255.0.0
        gateway: 10.0.0.1
      - ipaddr: 10.3.0.0
        netmask: 16
        gateway: 10.0.0.1
