db:
  group.absent: []
never:
  group.absent: []
cyd:
  group.absent: []
