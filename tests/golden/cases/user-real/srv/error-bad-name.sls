bad name:
  user.present:
    - name: "no spaces"
