a:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: __slot__:salt:test.echo(text=from slot)
b:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: __slot__:salt:test.echo(hello) ~ /tail
c:
  file.managed:
    - name: __slot__:salt:test.echo(ROOT/box/slotted)
    - contents: __slot__:salt:cmd.run("echo one two")
d:
  file.managed:
    - name: ROOT/box/d
    - contents:
      - __slot__:salt:test.echo(in list)
      - plain
e:
  cmd.run:
    - name: echo $X
    - env:
      - X: __slot__:salt:test.arg(1, k=v).kwargs.k
f:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: __slot__:salt:no.such(x)
g:
  test.configurable_test_state:
    - changes: False
    - result: True
    - comment: __slot__:nonsense
