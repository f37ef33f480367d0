one:
  git.config_unset:
    - name: x.y
    - value_regex: a
    - repo: ROOT/w/user
bad_repo:
  git.config_unset:
    - name: x.y
    - repo: ROOT/nothing
