include:
  - .sibling
  - a.other
b: 1
