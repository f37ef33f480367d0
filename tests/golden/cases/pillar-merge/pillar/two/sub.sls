a: {c: [3], d: {g: h}}
list: [c]
scalar: {now: map}
map: scalar
