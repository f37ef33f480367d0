{{ salt['cmd.run']('nosuchprogram') }}
