m: {dev: 1}
