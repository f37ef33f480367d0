special:
  cron.absent:
    - name: /reboot
    - special: '@reboot'
