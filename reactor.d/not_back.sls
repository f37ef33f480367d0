{# Tells whoever follows the bus that a minion did not come back. #}
tell:
  runner.event.send:
    - tag: alert/not_back
    - data:
        minion: {{ key | yaml_encode }}
        told_by: {{ data.user | yaml_encode }}
