cmd: {{ salt['cmd.run']('echo from cmd') }}
filter: {{ salt['grains.filter_by']({'Debian': {'x': 1}}) }}
config: {{ salt['config.get']('id') }}
grain: {{ salt['grains.get']('id') }} {{ salt.grains.get('nosuch', 'dflt') }}
pillar: {{ salt['pillar.get']('x', 'no pillar') }} {{ pillar.get('x', 'none') }}
id: {{ grains.id }} {{ opts.id }} {{ minion_id | default('no minion_id') }}
