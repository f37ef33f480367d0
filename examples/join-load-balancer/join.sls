join:
  runner.state.orchestrate:
    - args:
      - mods: orch.join
      - pillar: {host: {{ data['id'] | yaml_encode }}}
