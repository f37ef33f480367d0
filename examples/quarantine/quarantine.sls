{#- Events of minions have `_from`: their sender. #}
{%- if '_from' not in data %}
cut_off:
  local.cmd.run:
    - tgt: {{ data['host'] | yaml_encode }}
    - args:
      - cmd: quarantine on
no_schedule:
  local.schedule.disable:
    - tgt: {{ data['host'] | yaml_encode }}
tell:
  runner.event.send:
    - tag: alert/quarantine
    - data: {host: {{ data['host'] | yaml_encode }}, reason: {{ data['reason'] | yaml_encode }}}
{%- endif %}
