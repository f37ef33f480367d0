too_far_left:
  file.managed:
    - name: ROOT/box/one
    - source: salt://one.j2
    - template: jinja
    - mode: '0644'
    - require:
      - test: before
    - onlyif: 'true'
    - defaults:
      port: 80
      host: first
    - context:
        host: second
    - order: 5

more_values:
  file.managed:
    - name: ROOT/box/two
    - source: salt://one.j2
    - template: jinja
    - makedirs: true
    - host: third
    - port: [1, 2]
    - context: {}

whole_tree:
  file.recurse:
    - name: ROOT/box/tree
    - source: salt://tree
    - template: jinja
    - host: fourth

before:
  test.nop
