{#- The ids of machines that are expected, one a line. Whoever can write it decides who joins. #}
{%- set expected = salt['slsutil.renderer']('/srv/reactor/expected.yaml', default_renderer='yaml') -%}
{%- if data['act'] == 'pend' and data['id'] in expected %}
accept:
  wheel.key.accept:
    - match: {{ data['id'] | yaml_encode }}
{%- elif data['act'] == 'pend' and data['id'] in ['localhost', 'ubuntu', 'debian'] %}
reject:
  wheel.key.reject:
    - match: {{ data['id'] | yaml_encode }}
{%- endif %}
