{% set outer = 'set' %}
{% from 'lib/m.jinja' import cfg as with_ctx with context %}
{% from 'lib/m.jinja' import cfg, wrap, exported %}
{% import 'lib/m.jinja' as m %}
ROOT/box/out:
  file.managed:
    - contents:
      - {{ with_ctx('a') }}
      - {{ cfg('b', {'v': 2}) }}
      - {{ m.cfg('c', opts={'v': [1]}) }} {{ m.exported }} {{ exported }}
      - {% call wrap('b') %}inner {{ outer }}{% endcall %}
