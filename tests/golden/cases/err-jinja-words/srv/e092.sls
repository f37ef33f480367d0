{{ salt['x.y']() }}
