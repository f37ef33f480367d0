include: [base]
extend:
  one: text
