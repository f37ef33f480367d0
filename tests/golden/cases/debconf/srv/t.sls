same:
  debconf.set:
    - name: tzdata
    - data:
        tzdata/Areas: {type: select, value: Europe}
changed:
  debconf.set:
    - name: nullmailer
    - data:
        nullmailer/relayhost: {type: string, value: relay.example.org smtp}
        nullmailer/count: {type: string, value: 5}
flags:
  debconf.set:
    - name: pkg
    - data:
        pkg/flag: {type: boolean, value: true}
        pkg/other: {type: boolean, value: false}
file:
  debconf.set_file:
    - source: salt://answers
missing:
  debconf.set_file:
    - source: salt://never
