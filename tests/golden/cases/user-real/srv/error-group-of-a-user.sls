group of a user:
  user.present:
    - name: bob
    - gid: nosuch
    - allow_gid_change: True
