up:
  service.running:
    - enable: True
up-enabled:
  service.running:
    - enable: False
down-enabled:
  service.dead: []
delayed:
  service.running:
    - name: down
    - init_delay: 0.1
