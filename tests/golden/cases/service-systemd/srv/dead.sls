up:
  service.dead: []
up-enabled:
  service.dead:
    - enable: False
down:
  service.dead:
    - enable: True
down-enabled:
  service.dead:
    - enable: False
    - no_block: True
    - init_delay: 0.1
static-one:
  service.dead:
    - sig: nothing
