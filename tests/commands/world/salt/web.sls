include:
  - common

web-conf:
  file.managed:
    - name: /mnt/box/{{ grains.id }}/web.conf
    - contents: |
        listen {{ pillar['port'] }}
        name {{ pillar.get('site', {}).get('name', 'none') }}
    - require:
      - file: motd

web-reload:
  cmd.run:
    - name: echo reloaded
    - onchanges:
      - file: web-conf
