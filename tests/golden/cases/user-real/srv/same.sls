ann:
  user.present:
    - uid: 1001
    - gid: 1001
    - groups: [adm, web]
    - home: /home/ann
    - shell: /bin/sh
    - fullname: Ann A
    - roomnumber: 1
    - workphone: 2
    - homephone: 3
    - other: more
    - password: other
    - enforce_password: True
    - hash_password: True
bob:
  user.present:
    - groups: [db]
    - remove_groups: False
    - mindays: 0
    - maxdays: 99999
    - warndays: 7
    - createhome: False
cyd:
  user.present:
    - password: ignored
    - enforce_password: False
    - expire: 20000
    - inactdays: 10
    - date: 19000
    - password_lock: True
