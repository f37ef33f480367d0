{%- set conf = {'sites': {'a': {'port': 80, 'ssl': true}, 'b': {'port': 8080}}, 'order': ['b', 'a']} %}
{%- for name in conf.order %}
{%- set site = conf.sites[name] %}
{%- set ns = namespace(lines=[]) %}
{%- for k, v in site | dictsort %}{% set ns.lines = ns.lines + [k ~ '=' ~ v] %}{% endfor %}
site_{{ name }}:
  test.nop:
    - lines: {{ ns.lines }}
    - port: {{ site.port }}
    - ssl: {{ site.get('ssl', False) }}
    - first: {{ loop.first }}
    - url: "http{{ 's' if site.ssl is defined and site.ssl else '' }}://{{ name }}:{{ site.port }}/"
    {%- if not loop.last %}
    - require_in:
      - test: site_{{ conf.order[loop.index] }}
    {%- endif %}
{%- endfor %}
{% set merged = {} %}
{% for d in [{'x': 1}, {'y': [1]}, {'x': 2}] %}{% do merged.update(d) %}{% endfor %}
merged:
  test.nop:
    - data: {{ merged | json }}
    - sorted: {{ merged.keys() | sort | join(',') }}
    - sel: {{ [1, 2, 3, 4] | select('>', 2) | list }} {{ ['a', '', 'b'] | select | list }} {{ [{'n': 'x', 'v': 1}, {'n': 'y', 'v': 2}] | map(attribute='n') | join('/') }}
    - group: {{ [{'n': 'x', 'v': 1}, {'n': 'y', 'v': 1}] | groupby('v') | map('last') | map('length') | list }}
    - rej: {{ ['a', 'b'] | reject('equalto', 'a') | list }} {{ [{'a': 1}, {'b': 2}] | selectattr('a', 'defined') | list }}
    - unique: {{ ['b', 'a', 'b'] | unique | list }} {{ ['b', 'a', 'b'] | unique | sort | first }}
