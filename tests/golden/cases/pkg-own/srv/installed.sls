one:
  pkg.installed:
    - version: '1.0'
    - refresh: True
several:
  pkg.installed:
    - pkgs:
      - two
      - three: '1.0'
      - needs
ranges:
  pkg.installed:
    - pkgs:
      - four: '>=1.0'
    - skip_suggestions: True
    - skip_verify: True
glob:
  pkg.installed:
    - name: five
    - version: '1.*'
held-one:
  pkg.installed:
    - name: six
    - version: '1.0'
    - hold: True
epoch:
  pkg.installed:
    - version: '1.0'
    - ignore_epoch: True
recommended:
  pkg.installed:
    - install_recommends: False
