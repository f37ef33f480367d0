# Fires for a minion that has not started ten minutes after a job to reboot it.
not_back:
  rule.absent:
    - after: salt/job/*/new
    - where: {fun: system.reboot}
    - each: minions
    - expect: salt/minion/*/start
    - by: id
    - within: 10m
    - react: /srv/reactor/not_back.sls
