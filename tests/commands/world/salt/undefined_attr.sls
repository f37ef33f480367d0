one:
  test.nop:
    - name: {{ nothing.at.all }}
