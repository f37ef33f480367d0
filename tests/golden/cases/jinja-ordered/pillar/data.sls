a: {b: {c: 1}, l: [{x: "it's\ntwo"}], none: {}}
