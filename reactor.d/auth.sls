{#- Accepts the keys of new minions whose id matches. Bound to salt/auth.

    Accept by name only ids that nobody else can use: narrow the pattern to the names of your machines. It is a regular
    expression, matched from the start. -#}
{%- set accepted_ids = '(web|db)[0-9]+$' -%}

{%- if data.get('act') == 'pend' and data.get('id', '') is match(accepted_ids) %}
minion_add:
  wheel.key.accept:
    - match: {{ data['id'] | yaml_encode }}
{%- endif %}
