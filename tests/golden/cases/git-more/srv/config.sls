bool:
  git.config_set:
    - name: core.filemode
    - value: False
    - repo: ROOT/w/user
multi:
  git.config_set:
    - name: x.y
    - multivar: [a, b, 3]
    - repo: ROOT/w/user
multi_text:
  git.config_set:
    - name: x.z
    - multivar: a
    - repo: ROOT/w/user
names:
  git.config_set:
    - names:
      - user.name:
        - value: Some One
      - user.email:
        - value: some@example.org
    - repo: ROOT/w/user
