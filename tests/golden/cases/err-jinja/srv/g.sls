a:
  test.nop:
    - name: {{ d.b.c | default('x') }}
