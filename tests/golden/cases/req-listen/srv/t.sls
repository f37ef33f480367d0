a:
  test.succeed_with_changes
b:
  test.succeed_without_changes
l1:
  test.nop:
    - listen:
      - test: a
l2:
  test.nop:
    - listen:
      - test: b
l3:
  test.nop:
    - name: l3 name
    - listen:
      - test: a
      - test: b
after:
  test.nop
fire:
  cmd.wait:
    - name: echo fired
    - listen:
      - test: a
