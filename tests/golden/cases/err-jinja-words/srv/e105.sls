{{ salt['pillar.get']() }}
