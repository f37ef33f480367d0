a: test.nop
b:
  test.nop:
    - name: bname
    - require: [{test: a}]
