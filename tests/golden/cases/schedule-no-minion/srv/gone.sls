gone:
  schedule.absent: []
off:
  schedule.disabled: []
'on':
  schedule.enabled: []
