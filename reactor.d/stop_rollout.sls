{# Stops the orchestration before its next state. The current wave finishes. #}
{% if registers.rollout %}
stop:
  runner.state.soft_kill:
    - args:
      - jid: {{ registers.rollout | string | yaml_encode }}
{% endif %}
tell:
  runner.event.send:
    - tag: brine/alert/rollout_stopped
    - data:
        failed: {{ members | json }}
        share: {{ share }}
