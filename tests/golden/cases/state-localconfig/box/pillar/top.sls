base: {other: [p]}
