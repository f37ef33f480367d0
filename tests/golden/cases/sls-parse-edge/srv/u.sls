a:
  test.nop:
    - name:
b:
  test.nop:
    - name: ''
c:
  test.nop:
    - names: []
