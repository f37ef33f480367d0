a:
  test.nop:
    - name: @foo
