include: [base]
extend:
  ROOT/box/one:
    file.managed:
      - mode: '0600'
