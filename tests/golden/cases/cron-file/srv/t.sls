new:
  cron.file:
    - name: salt://tab
same:
  cron.file:
    - name: salt://tab
rendered:
  cron.file:
    - name: salt://rendered
    - template: jinja
    - context: {hour: 5}
kept:
  cron.file:
    - name: salt://tab
    - replace: False
missing:
  cron.file:
    - name: salt://never
nobody:
  cron.file:
    - name: salt://tab
    - user: golden_nobody
daemon:
  cron.file:
    - name: salt://tab
    - user: daemon
