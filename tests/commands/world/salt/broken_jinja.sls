one:
  test.nop: []
{% if pillar.x %}
