{{ opts.nokey }}
