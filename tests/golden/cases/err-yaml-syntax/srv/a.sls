a:
  test.nop:
    - name: b: c
