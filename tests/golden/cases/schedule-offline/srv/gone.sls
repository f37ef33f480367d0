plain:
  schedule.absent:
    - offline: True
args:
  schedule.absent:
    - offline: True
    - persist: False
never:
  schedule.absent:
    - offline: True
