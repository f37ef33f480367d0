up:
  service.unmasked: []
down:
  service.unmasked:
    - runtime: True
