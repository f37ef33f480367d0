{% import_yaml 'map.yaml' as imported %}
{% set from_pillar = salt['pillar.get']('a:b') %}
{% set merged = salt['pillar.get']('a', {'d': {}}, merge=True) %}
{% set filtered = salt['grains.filter_by']({'default': {'q': {}}}, merge=pillar.a) %}
{% set again = salt['grains.filter_by']({'default': {'r': {}}}, merge=filtered) %}
{% set nothing = salt['grains.filter_by']({'nosuch': {'q': {}}}, merge=pillar.a) %}
t:
  test.configurable_test_state:
    - changes: False
    - comment: |
        {{ pillar.a }} {{ [pillar.a.l] }}
        {{ pillar.a | string }} {{ pillar.a.none | string }}
        {{ '%s' % pillar.a.l }} {{ '{}'.format(from_pillar) }}
        {{ pillar.a.items() }} {{ {}.items() }}
        {{ pillar.a.b ~ '' }} {{ pillar.a.b.copy() | string }} {{ dict(pillar.a) | string }}
        {{ merged | string }} {{ salt['pillar.items']() | string | length > 20 }}
        {{ filtered | string }} {{ again | string }} {{ nothing | string }}
        {{ imported | string }} {{ odict(a=1) | string }}
        {{ salt['defaults.merge']({'b': {}}, pillar.a, in_place=False) | string }}
        {{ salt['slsutil.renderer'](string='a: {b: 1}') | string }}
        {{ salt['cmd.run'](['printf', '%s;', 'a b', "it's"]) }}
