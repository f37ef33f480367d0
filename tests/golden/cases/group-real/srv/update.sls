web:
  group.present:
    - gid: 2500
    - members: [cyd, ann]
db:
  group.present:
    - addusers: [ann]
    - delusers: [bob]
adm:
  group.present:
    - members: []
empty:
  group.present:
    - gid: 2001
    - non_unique: True
