{{ salt['cmd.run']() }}
