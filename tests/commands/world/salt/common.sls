motd:
  file.managed:
    - name: /mnt/box/{{ grains.id }}/motd
    - source: salt://files/motd.jinja
    - template: jinja
    - makedirs: True
    - mode: '0640'
