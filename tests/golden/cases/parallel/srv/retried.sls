again:
  cmd.run:
    - name: echo x >> ROOT/box/tries; test $(wc -l < ROOT/box/tries) = 2
    - retry: {attempts: 3, interval: 0}
after:
  test.nop: []
