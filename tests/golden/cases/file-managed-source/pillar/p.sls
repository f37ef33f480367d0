text: |
  from pillar
  second
list: [a, b]
deep: {er: value}
num: 7
