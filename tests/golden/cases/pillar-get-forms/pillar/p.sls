a: {b: c, d: {e: [1, {f: g}]}}
list: [x, {k: v}, z]
num: 5
zero: 0
empty: ''
none: null
'key:with:colons': odd
7: seven
