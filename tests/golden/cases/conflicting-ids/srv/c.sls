same:
  test.nop:
    - name: other
