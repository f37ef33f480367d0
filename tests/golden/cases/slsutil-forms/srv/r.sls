{% set x = [1, 2] %}
x: {{ x }}
id: {{ grains['id'] }}
