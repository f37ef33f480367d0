env: base
tree: {base: 1, both: base}
opts_id: {{ opts.id }}
saltenv: {{ saltenv }}
