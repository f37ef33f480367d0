{% for f in ['nop', 'succeed_without_changes', 'succeed_with_changes', 'fail_with_changes', 'fail_without_changes'] %}
{{ f }}:
  test.{{ f }}:
    - name: n
{{ f }}_c:
  test.{{ f }}:
    - comment: own comment
{% endfor %}
{% for c in [True, False, '"Random"'] %}{% for r in [True, False] %}
conf_{{ loop.index }}_{{ c | string | replace('"', '') }}:
  test.configurable_test_state:
    - changes: {{ c if c is boolean else True }}
    - result: {{ r }}
    - comment: c {{ r }}
    - warnings: [w one, w two]
{% endfor %}{% endfor %}
note:
  test.show_notification:
    - text: some words
allow:
  test.configurable_test_state:
    - changes: False
    - allow_test_mode_failure: True
    - result: False
disallow:
  test.configurable_test_state:
    - changes: False
    - allow_test_mode_failure: False
    - result: False
check:
  test.check_pillar:
    - present: [a]
check2:
  test.check_pillar:
    - present: [nosuch]
    - string: a
badarg:
  test.nop:
    - anything: goes
