include: [e]
c: {{ word }}
