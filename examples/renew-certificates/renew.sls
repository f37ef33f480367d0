renew:
  runner.state.orchestrate:
    - args:
      - mods: orch.renew
      - pillar: {host: {{ data['id'] | yaml_encode }}}
