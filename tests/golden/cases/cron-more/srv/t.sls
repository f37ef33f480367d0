numbers:
  cron.present:
    - name: /numbers %Y
    - identifier: '12'
    - minute: 0
    - hour: 0
    - month: jan
    - dayweek: 0
texts:
  cron.present:
    - name: '  /padded  '
    - minute: '*/5'
    - hour: 1,2
    - daymonth: 1-5
    - comment: "several\nlines"
special_off:
  cron.present:
    - name: /special/off
    - special: '@daily'
    - identifier: special
    - commented: True
names:
  cron.present:
    - names: [/one, /two/more]
    - user: fred
    - minute: 3
env_number:
  cron.env_present:
    - name: NUMBER
    - value: '5'
env_spaces:
  cron.env_present:
    - name: SPACES
    - value: a b c
env_quoted:
  cron.env_present:
    - name: QUOTED
    - value: '"x=y"'
list:
  cron.present:
    - name: /list
    - identifier: list
    - minute: 5
    - hour: '*'
    - special: null
only_comment:
  cron.present:
    - name: /old
    - identifier: old name
    - minute: 5
    - comment: now with one
