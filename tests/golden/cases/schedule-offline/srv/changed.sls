plain:
  schedule.present:
    - function: test.ping
    - seconds: 40
    - offline: True
args:
  schedule.present:
    - function: test.arg
    - hours: 1
    - job_args: [b]
    - job_kwargs: {k: w}
    - offline: True
bad:
  schedule.present:
    - name: cron
    - cron: '0 3 * * *'
    - offline: True
