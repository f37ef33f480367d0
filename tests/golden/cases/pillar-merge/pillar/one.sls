include:
  - inc
  - keyed:
      key: nest:ed
      defaults: {dflt: from include}
a: {b: 1, c: [1, 2], d: {e: f}}
list: [a, b]
scalar: x
map: {k: v}
