{word: xyzzy, num: 5, lst: [1, two, {three: 3}]}
