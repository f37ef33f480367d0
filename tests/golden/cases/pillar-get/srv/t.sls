{% for expr in ['a:b', 'a:list:0', 'a:list:2:z', 'a:list:z', 'a:n', '7', 'over:y', 'over', 'a:b:c', 'nope', 'a:list'] %}
{{ expr }}:
  test.nop:
    - value: {{ salt['pillar.get'](expr, 'default') | json }}
    - comment: {{ salt['pillar.get'](expr, 'default') | json }}
{% endfor %}
merged:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: {{ salt['pillar.get']('over', {'x': 9, 'new': {'p': 1}}, merge=True) | yaml_dquote }} {{ salt['pillar.get']('over', delimiter='|') | json | yaml_dquote }}
