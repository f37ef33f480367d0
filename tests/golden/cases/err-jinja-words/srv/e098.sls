{{ salt['test.echo']('a', foo='b') }}
