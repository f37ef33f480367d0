include:
  - base
extend:
  nosuch:
    test:
      - comment: x
