include: [base]
extend: [one]
