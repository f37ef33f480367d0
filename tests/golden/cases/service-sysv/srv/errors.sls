nosuch:
  service.running: []
nosuch-dead:
  service.dead: []
nosuch-enabled:
  service.enabled: []
nosuch-disabled:
  service.disabled: []
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
unmask:
  service.running:
    - name: down
    - unmask: True
    - no_block: True
signature:
  service.running:
    - name: up
    - sig: no-such-process-of-anybody
refuses-reload:
  service.running:
    - name: refuses
    - reload: True
    - watch: [test: changes]
changes:
  test.succeed_with_changes: []
