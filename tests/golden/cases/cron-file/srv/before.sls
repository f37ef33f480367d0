new:
  cron.file:
    - name: salt://tab
missing:
  cron.file:
    - name: salt://never
