x:
  test.nop:
    - require_in: y
y: test.nop
