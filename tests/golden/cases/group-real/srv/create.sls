plain:
  group.present: []
numbered:
  group.present:
    - gid: 3100
system:
  group.present:
    - system: True
with-members:
  group.present:
    - members: [ann, bob]
with-added:
  group.present:
    - addusers: [cyd]
same-number:
  group.present:
    - gid: 2000
    - non_unique: True
