/etc/systemd/system/own.service:
  file.managed:
    - contents: "{{ pillar.get('text', 'one') }}"
own:
  service.running:
    - enable: True
    - watch:
      - file: /etc/systemd/system/own.service
