a:
  test.nop
b:
  test.fail_without_changes:
    - failhard: True
c:
  test.nop
