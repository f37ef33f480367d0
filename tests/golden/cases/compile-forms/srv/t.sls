a: test.nop
b:
  test.nop
c:
  test.nop: []
d:
  test:
    - nop
e:
  test:
    - succeed_with_changes
    - name: e name
f:
  test.nop:
    - name: x
      other: y
  cmd.run:
    - name: 'true'
g:
  test.nop:
    - name: [1]
    - state: ignored
h:
  test.nop:
    - names:
      - p
      - q: 
        - extra: 1
      - p
