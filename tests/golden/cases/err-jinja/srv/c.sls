a:
  test.nop:
    - name: {{ 'x' | nofilter }}
