{% set x = salt['test.echo'](
  'a',
  foo.bar.baz
) %}
