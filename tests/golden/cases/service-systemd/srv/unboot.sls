up:
  service.disabled: []
script:
  service.disabled: []
down:
  service.disabled:
    - no_block: True
