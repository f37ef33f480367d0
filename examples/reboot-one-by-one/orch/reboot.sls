{%- for id in pillar['hosts'] %}
{{ id }}_reboot:
  salt.function:
    - name: cmd.run_bg
    - tgt: {{ id }}
    - arg: ['sleep 1; reboot']
{%-   if not loop.first %}
    - require: [{salt: {{ loop.previtem }}_is_back}]
{%-   endif %}

{{ id }}_is_back:
  salt.wait_for_event:
    - name: salt/minion/{{ id }}/start
    - id_list: [{{ id }}]
    - timeout: {{ pillar.get('timeout', 300) }}
    - require: [{salt: {{ id }}_reboot}]
{%- endfor %}
