unknown:
  user.present:
    - name: ann
    - nosuch_argument: 1
