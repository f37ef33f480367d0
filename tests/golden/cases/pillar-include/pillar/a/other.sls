other: {{ slspath }}
