up:
  service.running: []
up-enabled:
  service.running:
    - enable: True
down:
  service.running:
    - enable: True
down-enabled:
  service.running:
    - enable: False
