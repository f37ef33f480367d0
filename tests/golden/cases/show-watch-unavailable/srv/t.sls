conf:
  test.succeed_with_changes: []
daemon:
  service.running:
    - name: golden
    - watch:
      - test: conf
    - watch_any:
      - test: conf
