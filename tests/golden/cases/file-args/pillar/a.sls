a:
  lines: [one, two]
  empty: ""
