context:
  file.managed:
    - name: ROOT/box/context
    - source: salt://text
    - template: jinja
    - context:
        a: __slot__:salt:test.echo(one)
        b: plain
        c: __slot__:salt:test.arg(1, k=two).kwargs.k ~ /x
defaults:
  file.managed:
    - name: ROOT/box/defaults
    - source: salt://text
    - template: jinja
    - defaults:
        a: __slot__:salt:test.echo(one)
        b: b
        c: c
env:
  cmd.run:
    - name: echo $X $Y
    - env:
        X: __slot__:salt:test.echo(one)
        Y: two
shell:
  file.managed:
    - name: ROOT/box/shell
    - contents: __slot__:salt:cmd.run("echo one | cat; echo $HOME")
dataset:
  file.serialize:
    - name: ROOT/box/dataset
    - serializer: json
    - dataset:
        a: __slot__:salt:test.echo(one)
        b: {c: __slot__:salt:test.echo(two)}
