up:
  service.enabled: []
down:
  service.enabled:
    - no_block: True
up-enabled:
  service.disabled: []
static-one:
  service.disabled: []
script:
  service.enabled: []
some.socket:
  service.enabled:
    - unmask: True
