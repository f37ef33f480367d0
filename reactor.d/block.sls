{# Blocks an address for ten minutes, on the host with the failed logins. Put the addresses that you log in from into
   `never`, or a few mistyped passwords lock you out. The attacker controls the value of `key`: only an address is
   inserted into the command. A reboot removes the route, too; `ip route del blackhole ADDRESS` removes it by hand. #}
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
