{% for name in ["plain", "templated", "foreign", "broken", "unopened", "named"] %}
{{ name }}:
  test.configurable_test_state:
    - result: true
    - changes: false
    - comment: {{ salt["pillar.get"](name, "nothing") | json | json }}
{% endfor %}
