new:
  cron.present:
    - name: /new/job -a 'x y'
    - minute: 5
    - hour: '*/2'
same:
  cron.present:
    - name: /old
    - identifier: old name
    - minute: 5
other_command:
  cron.present:
    - name: /older
    - identifier: old name
    - minute: 5
enabled:
  cron.present:
    - name: /two
    - identifier: two
    - minute: 5
    - hour: 6
    - commented: False
    - comment: |-
        now
        other
adopted:
  cron.present:
    - name: /no/identifier
    - minute: 7
    - identifier: mine
special:
  cron.present:
    - name: /daily
    - identifier: daily
    - special: '@weekly'
special_new:
  cron.present:
    - name: /reboot
    - special: '@reboot'
    - comment: at start
became_special:
  cron.present:
    - name: /new/job -a 'x y'
    - special: '@hourly'
disabled:
  cron.present:
    - name: /off
    - user: fred
    - minute: 1
    - commented: True
random_kept:
  cron.present:
    - name: /off
    - user: fred
    - minute: random
    - commented: True
broken:
  cron.present:
    - name: /x
    - user: broken
env:
  cron.env_present:
    - name: MAILTO
    - value: ops@example.org
env_new:
  cron.env_present:
    - name: SHELL
    - value: /bin/sh
env_same:
  cron.env_present:
    - name: SHELL
    - value: /bin/sh
env_broken:
  cron.env_present:
    - name: X
    - value: y
    - user: broken
