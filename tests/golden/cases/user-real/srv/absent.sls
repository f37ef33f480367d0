ann:
  user.absent: []
bob:
  user.absent:
    - purge: True
    - force: True
cyd:
  user.absent:
    - purge: True
never:
  user.absent: []
