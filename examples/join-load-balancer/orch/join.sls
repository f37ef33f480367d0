address:
  salt.function:
    - name: mine.send
    - tgt: {{ pillar['host'] | yaml_encode }}
    - arg: [address]
    - kwarg: {mine_function: 'grains.get', key: id}

balancer:
  salt.state:
    - tgt: 'lb*'
    - sls: [balancer]
    - require: [{salt: address}]
