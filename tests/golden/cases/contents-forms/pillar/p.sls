text: "a\n\n"
none: null
list: [a, b]
