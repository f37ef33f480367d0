/etc/motd:
  file.managed:
    - contents: managed
