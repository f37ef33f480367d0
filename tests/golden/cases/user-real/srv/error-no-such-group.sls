no such group:
  user.present:
    - name: newtwo
    - gid: nosuch
