from_file:
  test.nop:
    - name: n{{ 1 + 1 }}
