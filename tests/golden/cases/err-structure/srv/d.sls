a:
  test:
    - nop
    - succeed_with_changes
