web:
  test.configurable_test_state:
    - name: web name
    - changes: False
    - result: True
    - comment: from base
    - require:
      - test: first
first:
  test.nop
second:
  test.nop
