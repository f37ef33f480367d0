ROOT/box/out:
  file.managed:
    - source: salt://in.txt
    - template: jinja
ROOT/box/out2:
  file.managed:
    - source: salt://opts.txt
    - template: jinja
