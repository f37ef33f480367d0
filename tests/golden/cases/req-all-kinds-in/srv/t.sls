{% for kind in ['require', 'watch', 'onchanges', 'onfail', 'prereq'] %}
{{ kind }}_src:
  test.{{ 'fail_without_changes' if kind == 'onfail' else 'succeed_with_changes' }}:
    - {{ kind }}_in:
      - test: {{ kind }}_dst
{{ kind }}_dst:
  test.succeed_without_changes
{% endfor %}
