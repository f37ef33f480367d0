up:
  service.masked: []
down:
  service.unmasked: []
