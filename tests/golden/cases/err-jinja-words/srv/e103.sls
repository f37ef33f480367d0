{{ salt['test.exception']('boo') }}
