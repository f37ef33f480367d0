{{ salt['test.echo']() }}
