local:
  user.present:
    - name: newlocal
    - local: True
