{#- The job cache knows whether the minion has had a highstate, as far as it goes back (keep_jobs_seconds). #}
{%- if not salt['jobs.list_jobs'](search_function='state.highstate', search_target=data['id']) %}
highstate:
  local.state.highstate:
    - tgt: {{ data['id'] | yaml_encode }}
{%- endif %}
