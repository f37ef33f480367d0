{%- set tplroot = tpldir.split('/')[0] %}
{%- from tplroot ~ "/map.jinja" import TEMPLATE with context %}

TEMPLATE-package-install-pkg-installed:
  test.succeed_with_changes:
    - name: {{ TEMPLATE.pkg.name }}
    - arch: {{ TEMPLATE.get('arch', 'none') }}
    - finger: {{ TEMPLATE.finger }}
    - list: {{ TEMPLATE.list | json }}
