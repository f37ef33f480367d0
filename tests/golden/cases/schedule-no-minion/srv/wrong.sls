job:
  schedule.present:
    - function: test.ping
    - seconds: 60
    - cron: '* * * * *'
