seen:
  test.nop:
    - given: "{{ opts.test }} {{ opts['test'] }} {{ salt['config.get']('test') }} {{ opts.saltenv }} {{ opts.get('pillarenv') }}"
{% if opts.test %}
only in tests:
  test.succeed_with_changes
{% endif %}
by_name:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "{{ opts.test }} {{ opts.saltenv }} {{ opts.pillarenv }}"
in_template:
  file.managed:
    - name: ROOT/box/t
    - contents: "{{ opts.test }}"
in_source:
  file.managed:
    - name: ROOT/box/s
    - source: salt://s.jinja
    - template: jinja
called:
  module.run:
    - config.get: [test]
