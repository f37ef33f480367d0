include:
  - hello

site:
  file.managed:
    - name: {{ grains['home'] }}/site.conf
    - source: salt://site.conf.j2
    - template: jinja
    - mode: '0640'
    - require:
      - file: home

reload:
  cmd.run:
    - name: date -u > {{ grains['home'] }}/reloaded
    - onchanges:
      - file: site
