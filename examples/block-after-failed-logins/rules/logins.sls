failed_logins:
  rule.count:
    - tag: salt/beacon/*/btmp/*
    - by: hostname
    - count: 5
    - within: 60
    - react: /srv/reactor/block_everywhere.sls
