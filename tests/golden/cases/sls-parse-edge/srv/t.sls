# comment at the top

a:
  test.nop:   # trailing
    - name: x   # comment
    -   spaced:   y
'quoted id':
  test.nop: []
"double":
  "test.nop":
    - "name": "n"
id with spaces:
  test.nop
