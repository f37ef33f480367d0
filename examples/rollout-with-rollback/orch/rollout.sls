{%- set waves = [['web1'], ['web2', 'web3']] %}
{%- for wave in waves %}
wave_{{ loop.index }}:
  salt.state:
    - tgt: {{ wave | join(',') }}
    - tgt_type: list
    - sls: [app]
    - pillar: {version: {{ pillar['version'] | yaml_encode }}}
{%-   if not loop.first %}
    - require: [{salt: wave_{{ loop.index - 1 }}}]
{%-   endif %}
{%- endfor %}

rollback:
  salt.state:
    - tgt: 'web*'
    - sls: [app]
    - pillar: {version: {{ pillar['before'] | yaml_encode }}}
    - onfail_any:
{%- for wave in waves %}
      - salt: wave_{{ loop.index }}
{%- endfor %}
