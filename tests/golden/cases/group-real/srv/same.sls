web:
  group.present:
    - gid: 2000
    - members: [bob, ann]
db:
  group.present:
    - addusers: [bob]
    - delusers: [ann]
empty:
  group.present:
    - members: []
    - gid: "2002"
