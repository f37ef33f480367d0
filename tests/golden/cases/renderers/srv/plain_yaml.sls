#!yaml
a:
  test.nop:
    - name: '{{ 1 }}'
