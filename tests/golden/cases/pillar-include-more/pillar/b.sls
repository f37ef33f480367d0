b: {{ word }}
