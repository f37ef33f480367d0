{#- Applies the highstate when a minion starts. Bound to salt/minion/*/start.

    With only_first_start, a minion with a highstate in the job cache is ignored, so that restarts change nothing. -#}
{%- set only_first_start = false -%}

{%- if not only_first_start or not salt['jobs.list_jobs'](search_function='state.highstate', search_target=data['id']) %}
highstate_run:
  local.state.highstate:
    - tgt: {{ data['id'] | yaml_encode }}
{%- endif %}
