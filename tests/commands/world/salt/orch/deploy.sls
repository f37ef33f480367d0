ping:
  salt.function:
    - name: test.ping
    - tgt: '*'
apply:
  salt.state:
    - tgt: web1
    - sls: [changes]
    - require: [{salt: ping}]
