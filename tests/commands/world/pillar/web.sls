port: 8080
owner: {{ grains['id'] }}
