several:
  git.config_unset:
    - name: case.several
    - repo: ROOT/p/work
value:
  git.config_unset:
    - name: case.several
    - value_regex: ^one$
    - repo: ROOT/p/work
never:
  git.config_unset:
    - name: case.never
    - repo: ROOT/p/work
no_repo:
  git.config_unset:
    - name: case.never
