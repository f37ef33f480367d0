a:
  test.nop:
    - order: 7
  cmd.run:
    - name: x
    - unless: y
