ROOT/box/plain:
  file.managed:
    - source: salt://a/plain.txt
ROOT/box/second:
  file.managed:
    - source:
      - salt://no/such
      - salt://a/plain.txt
ROOT/box/rendered:
  file.managed:
    - source: salt://a/t.jinja
    - template: jinja
    - context:
        x: 5
ROOT/box/imports:
  file.managed:
    - source: salt://a/imports.jinja
    - template: jinja
    - defaults:
        x: [1, two]
ROOT/box/pillar:
  file.managed:
    - contents_pillar: text
ROOT/box/pillarlist:
  file.managed:
    - contents_pillar: [deep:er, num]
ROOT/box/grains:
  file.managed:
    - contents_grains: motd
ROOT/box/local:
  file.managed:
    - source: ROOT/srv/a/plain.txt
ROOT/box/slsrel:
  file.managed:
    - name: ROOT/box/named
    - source: salt://a/plain.txt
    - mode: keep
