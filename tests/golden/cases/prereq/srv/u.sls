before:
  test.fail_without_changes:
    - prereq:
      - file: target
target:
  file.managed:
    - name: ROOT/box/target
    - contents: newer
before2:
  test.nop:
    - prereq:
      - test: failing
failing:
  test.fail_without_changes
