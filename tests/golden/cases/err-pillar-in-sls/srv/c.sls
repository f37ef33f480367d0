{% set d = {'a': {'b': 1}} %}
a:
  test.nop:
    - x: {{ d.a.c }}
