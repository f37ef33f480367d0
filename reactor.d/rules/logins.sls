# Fires at the fifth failed login of one host within a minute, on any minion with the beacon btmp.
failed_logins:
  rule.count:
    - tag: salt/beacon/*/btmp/*
    - by: hostname
    - count: 5
    - within: 60
    - react: /srv/reactor/block.sls
