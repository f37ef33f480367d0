masked:
  service.masked:
    - name: up
unmasked:
  service.unmasked:
    - name: up
