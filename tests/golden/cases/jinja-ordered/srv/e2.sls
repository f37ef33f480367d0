{{ salt['pillar.get']('a:b').nosuch.x }}
