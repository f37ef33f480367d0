one:
  git.config_set:
    - name: user.email
    - value: a@example.org
    - repo: ROOT/p/work
several:
  git.config_set:
    - name: case.several
    - multivar:
      - one
      - two
    - repo: ROOT/p/work
both:
  git.config_set:
    - name: case.x
    - value: a
    - multivar: [b]
    - repo: ROOT/p/work
no_repo:
  git.config_set:
    - name: case.x
    - value: a
number:
  git.config_set:
    - name: case.number
    - value: 5
    - repo: ROOT/p/work
bad:
  git.config_set:
    - name: bad
    - value: 5
    - repo: ROOT/p/work
