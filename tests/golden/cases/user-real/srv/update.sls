ann:
  user.present:
    - uid: 1101
    - gid: web
    - allow_uid_change: True
    - allow_gid_change: True
    - groups: [db]
    - home: /home/ann2
    - shell: /bin/bash
    - fullname: Ann B
    - roomnumber: 5
    - workphone: 6
    - homephone: 7
    - other: 8
    - password: $6$new$hash
    - date: 19600
    - mindays: 3
    - maxdays: 70
    - inactdays: 4
    - warndays: 8
    - expire: 20600
bob:
  user.present:
    - groups: [empty, users]
    - remove_groups: False
    - password: $6$first$hash
    - enforce_password: False
    - home: /home/bob2
    - persist_home: True
cyd:
  user.present:
    - password_lock: False
    - optional_groups: [web, nosuch]
    - usergroup: True
    - gid: 1003
mail:
  user.present:
    - groups: []
    - empty_password: True
    - createhome: False
daemon:
  user.present:
    - password_lock: True
    - home: /home/yet/more
