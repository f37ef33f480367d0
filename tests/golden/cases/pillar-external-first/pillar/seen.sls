seen: true
