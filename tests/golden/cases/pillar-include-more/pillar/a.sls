include:
  - b: {defaults: {word: one}, key: 'x:y'}
  - b: {key: again}
  - plain
  - c: {defaults: {word: two}}
  - d
  - many.*: {key: globbed}
a: {{ word is defined }}
v: a
