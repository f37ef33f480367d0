up:
  service.enabled: []
down:
  service.enabled:
    - no_block: True
up-enabled:
  service.disabled: []
