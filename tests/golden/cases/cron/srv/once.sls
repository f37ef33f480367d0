no_identifier:
  cron.present:
    - name: /none
    - identifier: null
    - dayweek: Mon
env_empty:
  cron.env_present:
    - name: NOTHING
    - user: fred
