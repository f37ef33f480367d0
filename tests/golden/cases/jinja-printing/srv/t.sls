ROOT/box/out:
  file.managed:
    - source: salt://in.txt
    - template: jinja
