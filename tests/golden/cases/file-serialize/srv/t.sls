{% set data = {'b': [1, 'two', none, true], 'a': {'x': 1.5, 'y': 'yes', 'z': '0644'}, 'c': 'ü'} %}
{% for f in ['json', 'yaml'] %}
ROOT/box/{{ f }}:
  file.serialize:
    - dataset: {{ data | json }}
    - formatter: {{ f }}
{% endfor %}
ROOT/box/serializer:
  file.serialize:
    - dataset: {a: 1}
    - serializer: json
    - serializer_opts:
      - indent: 4
ROOT/box/pillar:
  file.serialize:
    - dataset_pillar: conf
    - formatter: yaml
    - mode: '0600'
ROOT/box/ini:
  file.serialize:
    - dataset: {sec: {k: v, n: 1}, other: {a: b}}
    - formatter: configparser
ROOT/box/bad:
  file.serialize:
    - dataset: {a: 1}
    - formatter: nosuch
ROOT/box/none:
  file.serialize:
    - formatter: json
ROOT/box/both:
  file.serialize:
    - dataset: {a: 1}
    - dataset_pillar: conf
