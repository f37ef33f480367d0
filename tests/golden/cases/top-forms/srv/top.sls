{% set more = ['d'] %}
base:
  'gol*,other':
    - never
  '*':
    - a
    - b.*
  'golden':
    - match: glob
    - c
  'L@golden,other':
    - match: compound
    - e
  {% for m in more %}
  '[fg]olden':
    - {{ m }}
  {% endfor %}
  'E@gold..':
    - f
  '*olden':
    - ignore_missing: True
    - a
