{#- Put the addresses that you log in from into `never`. #}
{%- set never = ['127.0.0.1', '::1', '10.0.0.1'] %}
{%- if key is match('^[0-9a-fA-F.:]+$') and key not in never %}
block:
  local.cmd.run_bg:
    - tgt: '*'
    - args:
      - cmd: ip route replace blackhole {{ key }}; sleep 600; ip route del blackhole {{ key }}
tell:
  runner.event.send:
    - tag: alert/blocked
    - data: {address: {{ key | yaml_encode }}, count: {{ count }}}
{%- endif %}
