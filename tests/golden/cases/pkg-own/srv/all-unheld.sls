every:
  pkg.unheld:
    - all: True
