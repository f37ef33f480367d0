s00:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.echo(no)"
s01:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.echo(0644)"
s02:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.echo(1.10)"
s03:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.echo([1, 2])"
s04:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.echo(text=)"
s05:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.echo(a b)"
s06:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.echo('a b')"
s07:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.echo(a,)"
s08:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.kwarg(a=1,,b=2).b"
s09:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.kwarg(a=1, b=0644, c=no).c"
s10:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.echo('a'\"b\")"
s11:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.echo('it\\'s')"
s12:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.echo(\"a\\nb\")"
s13:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.echo(a\\,b)"
s14:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.echo(a#b)"
s15:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.echo([a)"
s16:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.echo(a"
s17:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.arg(a=b=c).kwargs.b"
s18:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.kwarg(x=[a=b]).x"
s19:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.echo(a)b"
s22:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.echo(a) ~ ' b'"
s23:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.echo(a) ~ b ~ c"
s24:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.echo(salt://x/y.txt)"
s25:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.echo({a: 1})"
s26:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.echo((a,b))"
s27:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:(a)"
s28:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.echo"
s29:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.echo('a"
s31:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:test.echo (a)"
s32:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: "__slot__:salt:'test.echo'(a)"
runas:
  cmd.run:
    - name: id -un
    - runas: __slot__:salt:test.echo(nobody)
    - cwd: /
onlyif:
  test.succeed_without_changes:
    - onlyif:
      - fun: file.file_exists
        path: __slot__:salt:test.echo(ROOT/box/here)
onlyif-args:
  test.succeed_without_changes:
    - onlyif:
      - fun: file.file_exists
        args:
          - __slot__:salt:test.echo(ROOT/box/missing)
unless:
  test.succeed_without_changes:
    - unless:
      - fun: file.file_exists
        args:
          - __slot__:salt:test.echo(ROOT/box/here)
