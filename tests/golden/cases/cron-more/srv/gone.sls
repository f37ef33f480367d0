number:
  cron.absent:
    - name: /numbers %Y
    - identifier: '12'
names:
  cron.absent:
    - names: [/one, /two/more, /never]
    - user: fred
disabled:
  cron.absent:
    - name: /list
    - identifier: list
special:
  cron.absent:
    - name: /daily
    - identifier: daily
    - special: '@weekly'
times:
  cron.absent:
    - name: /special/off
    - identifier: special
    - minute: 9
own:
  cron.absent:
    - name: /own/job
env:
  cron.env_absent:
    - name: NUMBER
