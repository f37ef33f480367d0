quoted:
  test.configurable_test_state:
    - changes: False
    - comment: "__slot__:salt:test.echo('from ') ~ 'slot'"
dict:
  test.configurable_test_state:
    - changes: False
    - comment: __slot__:salt:test.arg(a, b=c).kwargs.b ~ " tail"
nested:
  file.managed:
    - name: ROOT/box/n
    - contents: __slot__:salt:test.echo("with (brackets), commas")
grain:
  file.managed:
    - name: ROOT/box/g
    - contents: __slot__:salt:grains.get(id)
