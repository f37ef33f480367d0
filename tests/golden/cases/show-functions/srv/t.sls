include: [inc]
a:
  pkg.installed:
    - name: x
  test.nop:
    - require:
      - pkg: a
extend:
  inc:
    test:
      - name: extended
exclude:
  - id: nothing
