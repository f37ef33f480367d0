{#- Accepts the keys of new minions whose id matches. Bound to salt/auth.

    Only ids that nobody else can guess or take are safe to accept by name: narrow the pattern to
    the names that your machines get. It is a regular expression, matched from the start. -#}
{%- set accepted_ids = '(web|db)[0-9]+(_youshi)?$' -%}

{%- if data.get('act') == 'pend' and data.get('id', '') is match(accepted_ids) %}
minion_add:
  wheel.key.accept:
    - match: {{ data['id'] | yaml_encode }}
{%- endif %}
