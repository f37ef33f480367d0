up:
  service.disabled: []
down:
  service.disabled:
    - no_block: True
