#!jinja|yaml
{% set x = 1 %}
a:
  test.nop:
    - name: x{{ x }}
