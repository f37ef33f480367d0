#!yaml_jinja
a:
  test.nop:
    - name: n{{ 1 + 1 }}
