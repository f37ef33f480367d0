plain:
  user.present: []
full:
  user.present:
    - uid: 3001
    - gid: 100
    - groups: [web, db]
    - optional_groups: [adm, nosuch]
    - home: /home/elsewhere
    - shell: /bin/bash
    - fullname: Full Name
    - roomnumber: 12
    - workphone: "034"
    - homephone: 56
    - other: o, p
    - password: $6$abc$def
    - date: 19500
    - mindays: 2
    - maxdays: 80
    - inactdays: 5
    - warndays: 9
    - expire: 20500
system:
  user.present:
    - system: True
    - createhome: False
    - usergroup: False
    - nologinit: True
    - loginclass: staff
own-group:
  user.present:
    - usergroup: True
group-by-name:
  user.present:
    - gid: web
same-uid:
  user.present:
    - uid: 3001
    - unique: False
    - createhome: False
taken:
  user.present:
    - uid: 1001
emptied:
  user.present:
    - empty_password: True
locked:
  user.present:
    - password_lock: True
empty:
  user.present:
    - name: empty
    - groups: [empty]
    - remove_groups: False
optional:
  user.present:
    - optional_groups: [web]
    - password: secret
    - hash_password: True
    - enforce_password: False
