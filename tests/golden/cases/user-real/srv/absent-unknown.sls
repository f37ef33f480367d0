unknown:
  user.absent:
    - name: mail
    - nosuch_argument: 1
