base:
  '*':
    - one
    - two.sub
    - tmpl
  'nomatch':
    - never
  'id:golden':
    - match: grain
    - three
