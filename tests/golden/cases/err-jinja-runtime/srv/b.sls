one:
  test.nop
{% set x = 5 < 'a' %}
