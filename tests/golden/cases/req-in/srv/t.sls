a:
  test.succeed_with_changes:
    - require_in:
      - test: b
    - watch_in:
      - test: c
      - d
    - onchanges_in:
      - test: e
    - onfail_in:
      - test: f
    - listen_in:
      - test: g
    - use_in:
      - test: h
    - extra: used
{% for id in 'bcdefgh' %}
{{ id }}:
  test.succeed_without_changes:
    - comment: {{ id }}
{% endfor %}
p:
  test.succeed_without_changes:
    - prereq_in:
      - test: a
i:
  test.nop:
    - require_in:
        test: b
j:
  test.nop:
    - use:
      - test: a
