gone:
  cron.absent:
    - name: /older
    - identifier: old name
gone_by_name:
  cron.absent:
    - name: /no/identifier
gone_by_id:
  cron.absent:
    - name: unused
    - identifier: mine
never:
  cron.absent:
    - name: /never
    - minute: 5
special_never:
  cron.absent:
    - name: /never
    - special: '@reboot'
env:
  cron.env_absent:
    - name: MAILTO
env_never:
  cron.env_absent:
    - name: NEVER
env_never_fred:
  cron.env_absent:
    - name: NEVER
    - user: ann
broken:
  cron.env_absent:
    - name: X
    - user: broken
