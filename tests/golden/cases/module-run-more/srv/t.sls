both:
  module.run:
    - nosuch.one:
    - test.ping:
numbered:
  module.run:
    - test.echo:1: [first]
numbered_twice:
  module.run:
    - name: unused
    - test.echo:a: [first]
    - test.echo:b:
      - text: second
{% if opts.test %}
    - onlyif: 'false'
{% endif %}
refused:
  module.run:
    - state.single:
      - test.fail_without_changes
      - name: inner
result_map:
  module.run:
    - test.kwarg:
      - result: False
      - comment: no such luck
result_map_silent:
  module.run:
    - test.kwarg:
      - result: False
result_map_good:
  module.run:
    - test.kwarg:
      - result: True
      - comment: all is well
wrong_argument:
  module.run:
    - test.echo:
      - never: x
retcode:
  module.run:
    - test.retcode:
      - code: 3
old_result:
  module.run:
    - name: test.kwarg
    - kwargs: {result: False, comment: x}
old_success:
  module.run:
    - name: test.kwarg
    - kwargs: {success: False}
old_missing_one:
  module.run:
    - name: file.touch
old_names:
  module.run:
    - name: file.touch
    - m_name: ROOT/box/touched
old_raises:
  module.run:
    - name: test.exception
    - message: oh
old_state:
  module.run:
    - name: state.single
    - m_fun: test.nop
    - m_name: deep
old_extra:
  module.run:
    - name: test.ping
    - extra: x
old_kwargs_text:
  module.run:
    - name: test.kwarg
    - kwargs: text
old_args_text:
  module.run:
    - name: test.arg
    - args: text
list_of_lists:
  module.run:
    - test.arg:
      - [1, 2]
      - {a: {b: c}}
      - null
one_word:
  module.run:
    - test.echo: [word]
nothing_returned:
  module.run:
    - log.info: [x]
wait:
  module.wait:
    - name: test.echo
    - text: x
watched:
  module.run:
    - test.echo: [x]
    - watch:
      - module: one_word
watch_alias:
  module.watch:
    - name: test.echo
    - text: x
    - watch:
      - module: one_word
