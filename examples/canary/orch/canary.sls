canary:
  salt.state:
    - tgt: {{ pillar['canary'] | yaml_encode }}
    - sls: [release]
    - pillar: {version: {{ pillar['version'] | yaml_encode }}}

healthy:
  salt.function:
    - name: cmd.run
    - tgt: {{ pillar['canary'] | yaml_encode }}
    - arg: ['check-health']
    - require: [{salt: canary}]

rest:
  salt.state:
    - tgt: {{ ('web* and not ' ~ pillar['canary']) | yaml_encode }}
    - tgt_type: compound
    - batch: 2
    - sls: [release]
    - pillar: {version: {{ pillar['version'] | yaml_encode }}}
    - require: [{salt: healthy}]
