# Five failed logins from one host within a minute, on any minion that has the btmp beacon.
failed_logins:
  rule.count:
    - tag: salt/beacon/*/btmp/*
    - by: hostname
    - count: 5
    - within: 60
    - react: /srv/reactor/block.sls
