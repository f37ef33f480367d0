let go:
  pkg.unheld:
    - all: True
