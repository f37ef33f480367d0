up:
  service.running:
    - enable: True
up-enabled:
  service.running:
    - enable: False
down-enabled:
  service.dead: []
masked-one:
  service.running:
    - unmask: True
runtime-masked:
  service.running:
    - unmask: True
    - unmask_runtime: True
    - enable: True
delayed:
  service.running:
    - name: down
    - init_delay: 0.1
