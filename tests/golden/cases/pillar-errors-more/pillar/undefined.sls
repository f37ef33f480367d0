d: {{ nothing.here }}
