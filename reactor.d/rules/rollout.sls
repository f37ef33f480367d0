# Stops the running rollout when states fail on more than 10 % of the node group "web" within half an hour.
rollout:
  register.last:
    - tag: salt/run/*/new
    - where: {fun: runner.state.orch*, 'fun_args:0': orch.rollout}
    - value: jid
    - window: 6h

web_failures:
  rule.share:
    - tag: salt/job/*/ret/*
    - where: {fun: state.*, retcode: {above: 0}}
    - by: id
    - of: {nodegroup: web}
    - above: 10%
    - within: 30m
    - react: /srv/reactor/stop_rollout.sls
