{{ salt['test.ping'](1, 2, 3) }}
