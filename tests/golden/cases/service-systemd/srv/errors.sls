nosuch:
  service.running: []
nosuch-dead:
  service.dead: []
nosuch-enabled:
  service.enabled: []
nosuch-disabled:
  service.disabled: []
nosuch-masked:
  service.masked: []
broken:
  service.running:
    - enable: True
broken-enabled:
  service.enabled:
    - name: broken
oneshot:
  service.running: []
oneshot-enabled:
  service.running:
    - name: oneshot
    - enable: True
masked-one:
  service.running: []
masked-enabled:
  service.enabled:
    - name: masked-one
refuses:
  service.dead:
    - enable: False
refuses-disabled:
  service.disabled:
    - name: refuses
enabled-option:
  service.running:
    - name: up
    - enabled: True
enabled-option-dead:
  service.dead:
    - name: up
    - enabled: True
own-masked:
  service.masked: []
refuses-unmask:
  service.unmasked:
    - name: refuses
