settings:
  network.system:
    - enabled: True
    - hostname: web.example.com
    - require_reboot: True
