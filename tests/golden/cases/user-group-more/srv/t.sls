groups:
  user.present:
    - name: nobody
    - groups: [nogroup]
    - remove_groups: False
fullname:
  user.present:
    - name: nobody
    - fullname: Golden
uid:
  user.present:
    - name: nobody
    - uid: 4711
optional:
  user.present:
    - name: goldenuser2
    - optional_groups: [nosuchgroup]
    - createhome: False
    - system: True
members:
  group.present:
    - name: daemon
    - members: [root]
del:
  group.present:
    - name: daemon
    - delusers: [root]
