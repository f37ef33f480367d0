opts:
  test.nop:
{%- for name in ['test', 'id', '__role', 'saltenv', 'pillarenv', 'master', 'master_type', 'master_port', 'state_top', 'renderer',
    'file_client', 'hash_type', 'transport', 'ipv6', 'multiprocessing', 'top_file_merging_strategy', 'default_top', 'env_order',
    'jinja_trim_blocks', 'grains_cache', 'fileserver_backend', 'interface', 'startup_states', 'master_finger', 'state_output_diff'] %}
    - {{ name }}: {{ opts[name] | json }}
{%- endfor %}
    - environment: {{ opts.environment is defined }}
    - minion_id: {{ opts.minion_id is defined }}
    - grains: {{ opts.grains.id }} {{ opts.pillar.other.k }} {{ salt['config.get']('grains:id') }} {{ salt['config.get']('hash_type') }}
