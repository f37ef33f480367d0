changes:
  test.succeed_with_changes
same:
  test.succeed_without_changes
fails:
  test.fail_without_changes
{% for kind in ['require', 'watch', 'onchanges', 'onfail', 'require_any', 'watch_any', 'onchanges_any', 'onfail_any', 'onfail_all'] %}
{{ kind }}_both:
  test.succeed_without_changes:
    - {{ kind }}:
      - test: changes
      - test: fails
{{ kind }}_good:
  test.succeed_without_changes:
    - {{ kind }}:
      - changes
      - id: same
{% endfor %}
mixed1:
  test.nop:
    - require:
      - test: same
    - onchanges:
      - test: same
mixed2:
  test.nop:
    - onfail:
      - test: same
    - onchanges:
      - test: changes
mixed3:
  test.succeed_with_changes:
    - watch:
      - test: changes
chain1:
  test.nop:
    - require:
      - test: fails
chain2:
  test.nop:
    - require:
      - test: chain1
      - test: same
