conf: {b: [1, two], a: {x: true, y: null}}
