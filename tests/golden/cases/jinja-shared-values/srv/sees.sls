{%- do salt['pillar.get']('m:sub').update({'x': 1}) %}
sees:
  test.nop:
    - pillar: {{ salt['pillar.get']('m') | json }}
    - path: {{ salt['pillar.get']('m:l:2') }} {{ salt['pillar.get']('m:a:deep') }} {{ salt['pillar.get']('m|sub|x', delimiter='|') }}
    - merged: {{ salt['pillar.get']('m', {'d': 1}, merge=True) | json }}
    - names: {{ salt['pillar.keys']('m') }}
    - default: {{ salt['pillar.get']('nope', 'none') }}
    - grains: {{ salt['grains.get']('gm') | json }}
    - other: {{ salt['pillar.get']('other') | json }}
    - top: {{ salt['pillar.get']('top', 'none') }}
    - variables: {{ [pillar.top, pillar.m, pillar.other, grains.gm, opts.optional] | json }}
