db-dir:
  file.directory:
    - name: /mnt/box/{{ grains.id }}/data
    - makedirs: True
    - mode: '0750'
