{% set l = [1] %}
a:
  test.nop:
    - x: {{ l[5] }}
