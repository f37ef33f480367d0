{# Drops what comes from a host, where its logins failed. The name is what the attacker sent: only an address
   is let into a command. #}
{% if key is match('^[0-9a-fA-F.:]+$') %}
block:
  local.cmd.run:
    - tgt: {{ data.id | yaml_encode }}
    - args:
      - cmd: ip route replace blackhole {{ key }}
{% endif %}
