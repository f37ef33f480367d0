same:
  logrotate.set:
    - key: rotate
    - value: 4
    - conf_file: ROOT/box/conf
changed:
  logrotate.set:
    - key: rotate
    - value: 2
    - conf_file: ROOT/box/conf
flag:
  logrotate.set:
    - key: weekly
    - value: true
    - conf_file: ROOT/box/conf
new_command:
  logrotate.set:
    - key: maxage
    - value: 30
    - conf_file: ROOT/box/conf
block_same:
  logrotate.set:
    - key: /var/log/wtmp
    - value: rotate
    - setting: 1
    - conf_file: ROOT/box/conf
block_changed:
  logrotate.set:
    - key: /var/log/wtmp
    - value: rotate
    - setting: 3
    - conf_file: ROOT/box/conf
block_included:
  logrotate.set:
    - key: /var/log/apt/term.log
    - value: rotate
    - setting: 6
    - conf_file: ROOT/box/conf
block_new:
  logrotate.set:
    - key: /var/log/new.log
    - value: size
    - setting: 5M
    - conf_file: ROOT/box/conf
