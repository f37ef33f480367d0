{% set p = salt['pillar.get'] %}
t:
  test.nop:
    - a: {{ p('a:d:e:1:f') }} {{ p('list:k') }} {{ p('list:0') }} {{ p('7') }} {{ p('a:d:e:0') }}
    - b: {{ p('none', 'dflt') }} {{ p('empty', 'dflt') }}| {{ p('zero', 'dflt') }} {{ p('nosuch', [1]) }} {{ p('a:b:c:d', 'deep') }}
    - c: {{ p('key:with:colons', 'no') }} {{ p('list', [], merge=True) }} {{ p('a', {'z': 1}, merge=True) | json }}
    - d: {{ pillar['a']['b'] }} {{ pillar.a.d.e[1].f }} {{ pillar.get('nosuch', 'x') }} {{ pillar.get('a:b', 'plain get') }}
    - e: {{ salt.pillar.get('num') + 1 }} {{ 'a' in pillar }} {{ pillar.num is number }}
    - f: {{ pillar['list'] | length }} {{ pillar.keys() | list | length > 5 }}
