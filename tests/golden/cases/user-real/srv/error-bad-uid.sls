bad uid:
  user.present:
    - name: newthree
    - uid: many
