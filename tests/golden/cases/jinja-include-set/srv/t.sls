{% set greeting = 'hello' %}
{% include 'part.sls' %}
{% include 'part2.jinja' without context %}
after:
  test.nop:
    - name: {{ greeting }} {{ inner | default('not leaked') }}
