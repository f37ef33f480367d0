t:
  test.nop:
    - a: {{ grains.role }} {{ grains['site']['town'] }} {{ grains.get('nosuch', 'd') }} {{ 'web' in grains.role }}
    - b: {{ salt['grains.get']('site:n') + 1 }} {{ salt['grains.get']('role:1', 'x') }} {{ salt['grains.get']('nosuch') }}|
    - c: {{ salt['config.get']('custom:opt') }} {{ salt['config.get']('inpillar:x') }} {{ salt['config.get']('role') }} {{ salt['config.get']('site:town') }}
    - d: {{ salt['grains.filter_by']({'golden': {'k': 'exact'}, 'gold*': {'k': 'glob'}, 'base': {'b': 1}}, grain='id', base='base') | json }}
    - e: {{ salt['grains.filter_by']({'x': {'k': 1}}, grain='id', default='x', merge={'m': {'n': 1}}) | json }}
    - f: {{ salt['grains.filter_by']({'x': {'k': 1}}, grain='id') }}
    - g: {{ salt['match.glob']('gold*') }} {{ salt['match.grain']('role:web') }} {{ salt['match.compound']('G@role:db and gold*') }}
