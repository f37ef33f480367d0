{# Blocks an address for ten minutes, on the host where its logins failed. Put the addresses that you log in from into
   `never`, or a few mistyped passwords lock you out. The name is what the attacker sent: only an address is let into a
   command. The route also ends with a reboot; `ip route del blackhole ADDRESS` removes it by hand. #}
{% set never = ['127.0.0.1', '::1'] %}
{% if key is match('^[0-9a-fA-F.:]+$') and key not in never %}
block:
  local.cmd.run:
    - tgt: {{ data.id | yaml_encode }}
    - args:
      - cmd: ip route replace blackhole {{ key }}
unblock:
  local.cmd.run_bg:
    - tgt: {{ data.id | yaml_encode }}
    - args:
      - cmd: sleep 600; ip route del blackhole {{ key }}
{% endif %}
