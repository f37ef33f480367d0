up:
  service.masked: []
down:
  service.masked:
    - runtime: True
masked-one:
  service.masked: []
up-enabled:
  service.unmasked: []
runtime-masked:
  service.unmasked:
    - runtime: True
