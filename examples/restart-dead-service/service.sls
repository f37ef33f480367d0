{%- set ours = ['nginx', 'postgresql', 'redis'] %}
{%- if data['service_name'] in ours and not data[data['service_name']]['running'] %}
start:
  local.service.start:
    - tgt: {{ data['id'] | yaml_encode }}
    - args:
      - name: {{ data['service_name'] | yaml_encode }}
{%- endif %}
