local:
  user.absent:
    - name: mail
    - local: True
