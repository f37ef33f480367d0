changes:
  test.succeed_with_changes: []
restart:
  service.running:
    - name: up
    - watch: [test: changes]
reload:
  service.running:
    - name: up
    - reload: True
    - watch: [test: changes]
force:
  service.running:
    - name: up
    - reload: True
    - force: True
    - watch: [test: changes]
start:
  service.running:
    - name: down
    - watch: [test: changes]
stop:
  service.dead:
    - name: up-enabled
    - watch: [test: changes]
stopped:
  service.dead:
    - name: down-enabled
    - watch: [test: changes]
enabled:
  service.enabled:
    - name: up
    - watch: [test: changes]
broken:
  service.running:
    - watch: [test: changes]
full:
  service.running:
    - name: up
    - full_restart: True
    - no_block: True
    - init_delay: 0.1
    - watch: [test: changes]
