up:
  salt.runner:
    - name: test.arg
    - arg: [1]
    - kwarg: {a: b}
keys:
  salt.wheel:
    - name: key.name_match
    - match: 'web*'
