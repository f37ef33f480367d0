{% set x = {
  'a': 1,
  'b': foo,
} %}
{{ x }}
