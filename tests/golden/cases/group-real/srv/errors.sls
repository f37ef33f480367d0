conflict:
  group.present:
    - name: web
    - members: [ann]
    - addusers: [bob]
both:
  group.present:
    - name: web
    - addusers: [bob]
    - delusers: [bob]
taken:
  group.present:
    - gid: 2001
taken by another:
  group.present:
    - name: users
    - gid: 2001
nobody:
  group.present:
    - name: web
    - addusers: [nobody-here]
nobody in new:
  group.present:
    - name: newgroup
    - members: [ann, nobody-here]
bad gid:
  group.present:
    - name: web
    - gid: many
bad name:
  group.present:
    - name: no spaces
