new2:
  module.run:
    - test.ping:
    - test.arg:
      - one
      - k: v
