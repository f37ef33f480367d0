same:
  test.nop:
    - name: x
