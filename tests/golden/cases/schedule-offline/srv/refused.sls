no_function:
  schedule.present:
    - seconds: 5
    - offline: True
two_times:
  schedule.present:
    - function: test.ping
    - seconds: 5
    - cron: '* * * * *'
    - offline: True
when_and_seconds:
  schedule.present:
    - function: test.ping
    - seconds: 5
    - when: 5:00pm
    - offline: True
bad_time:
  schedule.present:
    - function: test.ping
    - when: never
    - offline: True
