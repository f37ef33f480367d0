uid:
  user.present:
    - name: ann
    - uid: 5
uid and gid:
  user.present:
    - name: ann
    - uid: 5
    - gid: web
groups:
  user.present:
    - name: ann
    - groups: [nosuch, web, neither]
    - shell: /bin/dash
new with groups:
  user.present:
    - name: newone
    - groups: [nosuch]
comma:
  user.present:
    - name: ann
    - fullname: a,b
comma in room:
  user.present:
    - name: ann
    - roomnumber: 1,2
