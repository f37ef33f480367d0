a: {{ nothing }}
