{{ salt['cmd.run']('x', cwd='/nosuch') }}
