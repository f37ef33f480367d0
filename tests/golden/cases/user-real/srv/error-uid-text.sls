uid text:
  user.present:
    - name: ann
    - uid: "1001"
    - allow_uid_change: True
