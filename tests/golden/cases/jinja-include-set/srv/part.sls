{% set inner = 'inner' %}
part:
  test.nop:
    - name: {{ greeting }} {{ inner }}
