ROOT/box/out:
  file.managed:
    - source: salt://in.txt
    - template: jinja
    - defaults: {d: from defaults, both: d}
    - context: {c: from context, both: c}
    - mode: '0640'
