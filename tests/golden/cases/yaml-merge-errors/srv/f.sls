x:
  test.nop:
    - name: 'it's'
