changes:
  test.succeed_with_changes
same:
  test.succeed_without_changes
fails:
  test.fail_without_changes
failch:
  test.fail_with_changes
{% for kind in ['require', 'watch', 'onchanges', 'onfail', 'prereq', 'require_any', 'watch_any', 'onchanges_any', 'onfail_any', 'onfail_all'] %}
{% for target in ['changes', 'same', 'fails', 'failch'] %}
{{ kind }}_{{ target }}:
  test.succeed_without_changes:
    - {{ kind }}:
      - test: {{ target }}
{% endfor %}
{% endfor %}
