newuser:
  user.present:
    - name: goldenuser
    - uid: 4711
    - gid: 4711
    - home: ROOT/box/home
    - shell: /bin/sh
root:
  user.present: []
rootshell:
  user.present:
    - name: root
    - shell: /bin/golden
nogroup:
  user.present:
    - name: goldenuser
    - groups: [nosuchgroup]
gone:
  user.absent:
    - name: goldenuser
rootgone:
  user.absent:
    - name: root
group:
  group.present:
    - name: goldengroup
    - gid: 4711
groupsystem:
  group.present:
    - name: goldengroup
    - system: True
    - addusers: [root]
rootgroup:
  group.present:
    - name: root
    - gid: 0
rootgid:
  group.present:
    - name: root
    - gid: 4711
groupgone:
  group.absent:
    - name: goldengroup
groupgone2:
  group.absent:
    - name: root
