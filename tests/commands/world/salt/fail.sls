first:
  test.succeed_with_changes: []
breaks:
  test.fail_without_changes:
    - require:
      - test: first
after:
  test.nop:
    - require:
      - test: breaks
watcher:
  test.nop:
    - onfail:
      - test: breaks
