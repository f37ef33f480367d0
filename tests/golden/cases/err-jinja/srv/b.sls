{% set d = {'a': 1} %}
a:
  test.nop:
    - name: {{ d.b }}
