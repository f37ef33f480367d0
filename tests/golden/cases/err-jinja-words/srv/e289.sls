{{ salt['pillar.get']('nosuch').foo }}
