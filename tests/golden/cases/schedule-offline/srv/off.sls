plain:
  schedule.disabled:
    - offline: True
never:
  schedule.disabled:
    - offline: True
