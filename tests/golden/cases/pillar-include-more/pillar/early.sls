order: [early]
which: early
