apply:
  salt.state:
    - tgt: web1
    - sls: [fail]
later:
  test.nop:
    - require: [{salt: apply}]
