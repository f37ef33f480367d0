include: [base]
extend:
  one:
    file:
      - contents: extended
      - watch:
        - test: two
  two:
    test:
      - succeed_with_changes
