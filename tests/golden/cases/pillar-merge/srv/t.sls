a:
  test.nop:
    - comment: {{ pillar | json | yaml_squote }}
b:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: {{ salt['pillar.get']('a', {}) | json | yaml_squote }}
c:
  test.nop:
    - name: {{ salt['pillar.get']('nest:ed:value') }}
