{%- set tplroot = tpldir.split('/')[0] %}
{%- from tplroot ~ "/map.jinja" import TEMPLATE with context %}
include:
  - {{ tplroot }}.config.file

TEMPLATE-service-running:
  test.nop:
    - name: {{ TEMPLATE.service.name }}
    - watch:
      - sls: {{ tplroot }}.config.file
