greeting: hello
site: {name: hq, floors: [1, 2, 3]}
users:
  alice: {uid: 1001, groups: [adm]}
  bob: {uid: 1002}
enabled: True
ratio: 0.5
nothing: null
