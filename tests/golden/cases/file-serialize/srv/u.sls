ROOT/box/json:
  file.serialize:
    - dataset: {d: new, a: {x: 2}}
    - formatter: json
    - merge_if_exists: True
ROOT/box/yaml:
  file.serialize:
    - dataset: {d: new}
    - formatter: yaml
