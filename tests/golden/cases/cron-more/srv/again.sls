comment_gone:
  cron.present:
    - name: /old
    - identifier: old name
    - minute: 5
comment_changed:
  cron.present:
    - name: '/padded'
    - minute: '*/5'
    - hour: 1,2
    - daymonth: 1-5
    - comment: other
random_new:
  cron.present:
    - name: /old
    - identifier: old name
    - minute: 7
special_on:
  cron.present:
    - name: /special/off
    - special: '@daily'
    - identifier: special
back_to_times:
  cron.present:
    - name: /special/off
    - minute: 1
    - identifier: special
disabled:
  cron.present:
    - name: /list
    - identifier: list
    - minute: 5
    - commented: True
