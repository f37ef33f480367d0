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
static-one:
  service.running: []
named:
  service.running:
    - name: some.socket
    - enable: "true"
    - no_block: True
    - sig: anything
other-name:
  service.running: []
