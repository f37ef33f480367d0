{%- set groups = {'web': 'web*', 'db': 'db*'} %}
{%- set fields = data['data'] if 'data' in data else data %}
{%- if fields['group'] in groups and fields['version'] is match('[0-9]+([.][0-9]+)*$') %}
deploy:
  local.state.apply:
    - tgt: {{ groups[fields['group']] | yaml_encode }}
    - args:
      - mods: shop
      - pillar: {version: {{ fields['version'] | yaml_encode }}}
{%- endif %}
