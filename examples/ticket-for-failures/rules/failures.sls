failures:
  rule.count:
    - tag: salt/job/*/ret/*
    - where: {fun: state.*, retcode: {above: 0}}
    - by: jid
    - count: 3
    - within: 10m
    - react: /srv/reactor/ticket.sls
