include: [changes]
changed:
  test.nop: []
