base:
  '*':
    - s.all
  'gold*':
    - s.glob
  'other':
    - s.no
  'G@role:web and not G@role:mail':
    - s.compound
  'role:db':
    - match: grain
    - s.grain
  'site:town:U.m':
    - match: grain_pcre
    - s.pcre
  'size:big':
    - match: pillar
    - s.pillar
  'gold.n':
    - match: pcre
    - s.re
  'a,golden':
    - match: list
    - s.list
    - s.all
