include:
  - base
extend:
  web:
    test:
      - comment: extended
      - require:
        - test: second
  second:
    test.succeed_with_changes:
      - name: other
