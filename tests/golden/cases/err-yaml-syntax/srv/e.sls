a:
  test.nop:
    - name: !foo x
