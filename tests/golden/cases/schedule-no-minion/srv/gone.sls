gone:
  schedule.absent: []
idle:
  schedule.disabled: []
busy:
  schedule.enabled: []
