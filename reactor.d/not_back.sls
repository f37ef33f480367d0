{# Publishes an event about a minion that did not come back. #}
tell:
  runner.event.send:
    - tag: brine/alert/not_back
    - data:
        minion: {{ key | yaml_encode }}
        told_by: {{ data.user | yaml_encode }}
