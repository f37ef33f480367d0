ROOT/box/plain:
  file.managed:
    - source: salt://a/t.jinja
    - template: jinja
ROOT/box/missing:
  file.managed:
    - source: salt://no/such
ROOT/box/missinglist:
  file.managed:
    - source: [salt://no/such, salt://nor/such]
ROOT/box/both:
  file.managed:
    - source: salt://a/plain.txt
    - contents: x
ROOT/box/nopillar:
  file.managed:
    - contents_pillar: no:such
ROOT/box/badtemplate:
  file.managed:
    - contents: "{{ '{{ nope }}' }}"
    - template: jinja
ROOT/box/badimport:
  file.managed:
    - source: salt://a/imports.jinja
    - template: jinja
ROOT/box/nouser:
  file.managed:
    - contents: x
    - user: nosuchuser
ROOT/box/nogroup:
  file.managed:
    - contents: x
    - group: nosuchgroup
ROOT/box/checked:
  file.managed:
    - contents: x
    - check_cmd: grep -q y
ROOT/box/checked2:
  file.managed:
    - contents: y
    - check_cmd: grep -q y
ROOT/box/localmissing:
  file.managed:
    - source: ROOT/srv/nosuch
