up:
  service.running:
    - enable: True
up-dead:
  service.dead:
    - name: up
enabled:
  service.enabled:
    - name: up
disabled:
  service.disabled:
    - name: up
nosuch:
  service.running: []
nosuch-enabled:
  service.enabled: []
