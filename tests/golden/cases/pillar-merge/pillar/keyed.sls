value: {{ dflt }}
