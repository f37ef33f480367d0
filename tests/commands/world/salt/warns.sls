careful:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: |
        two
        lines
    - warnings: mind the gap
random:
  test.configurable_test_state:
    - changes: True
    - result: False
    - comment: broken
