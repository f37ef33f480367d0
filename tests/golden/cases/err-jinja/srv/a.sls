a:
  test.nop:
    - name: {{ missing }}
