three: {{ grains['id'] }}
a: {b: last}
