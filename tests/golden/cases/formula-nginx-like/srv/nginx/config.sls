{% from 'nginx/map.jinja' import nginx with context %}
{% macro value(v, ind=0) -%}
  {%- if v is number or v is string -%}{{ v }};
  {%- elif v is mapping -%}{
{%- for k, x in v.items() %}
{{ ' ' * (ind + 4) }}{{ k }} {{ value(x, ind + 4) }}
{%- endfor %}
{{ ' ' * ind }}}
  {%- elif v is iterable -%}{{ v | join(' ') }};
  {%- endif -%}
{%- endmacro %}
nginx_config:
  file.managed:
    - name: {{ nginx.lookup.conf }}
    - contents: |
        {%- for k, v in nginx.server.config.items() %}
        {{ k }} {{ value(v) | indent(8) }}
        {%- endfor %}
{% for name, settings in nginx.servers.managed.items() %}
{{ name }}_conf:
  file.{{ 'absent' if settings.get('deleted') else 'managed' }}:
    - name: ROOT/box/{{ name }}
    {%- if not settings.get('deleted') %}
    - contents: {{ settings.config | yaml_encode }}
    {%- endif %}
{% endfor %}
