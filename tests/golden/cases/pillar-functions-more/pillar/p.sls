users: {root: {shell: bash, uid: 0, empty: ''}}
list: [1, two, {three: 3.5}]
text: word
flag: true
none: null
