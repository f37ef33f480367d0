{%- set m = salt['pillar.get']('m') %}
{%- do m.update({'new': 1, 'sub': {}}) %}
{%- do salt['pillar.get']('m:a').update({'deep': 2}) %}
{%- do m.l.append(9) %}
{%- do m.pop('s') %}
{%- do salt['pillar.get']('m', {}, merge=True).update({'merged': 1}) %}
{%- do salt['pillar.get']('nope', {}).update({'default': 1}) %}
{%- do salt['grains.get']('gm').update({'new': 1}) %}
{%- do pillar.update({'top': 1}) %}
{%- do pillar.other.update({'variable': 1}) %}
{%- do grains.gm.update({'variable': 1}) %}
{%- do opts.update({'optional': 1}) %}
changes:
  test.nop:
    - pillar: {{ salt['pillar.get']('m') | json }}
    - gone: {{ salt['pillar.get']('m:s', 'gone') }}
    - merged: {{ salt['pillar.get']('m', {'d': 1}, merge=True) | json }}
