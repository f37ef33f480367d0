bad shell:
  user.present:
    - name: bob
    - shell: "/bin/\ng"
