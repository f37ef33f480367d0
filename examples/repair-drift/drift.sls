{%- if data['fun'] in ['state.apply', 'state.highstate'] and data['return'] is mapping %}
{%-   set differs = data['return'].values() | selectattr('result', 'none') | list %}
{%-   if differs %}
repair:
  local.state.apply:
    - tgt: {{ data['id'] | yaml_encode }}
{%-   endif %}
{%- endif %}
